import http, { type ResponseType } from 'k6/http';
import { Counter, Rate, Trend } from 'k6/metrics';
import { setTimeout } from 'k6/timers';
import { counters, eventsOf, type ObjectiveName, trends } from '../src/objectives.ts';
import { type Settings } from '../src/settings.ts';
import { type Answer, type Http, type Meter, type World } from '../src/world.ts';

/** k6 has one, its types do not. */
declare const console: { error(message: string): void };

const timeout = '60s';
const success = http.expectedStatuses({ min: 200, max: 299 });
const successOrRefusal = http.expectedStatuses({ min: 200, max: 299 }, 403);

/** Where the scenarios run under k6. To be called while a script is loaded, since metrics are declared then. */
export const createK6World = (settings: Settings, objectives: readonly ObjectiveName[]): World => ({
  settings,
  http: k6Http,
  meter: createMeter(objectives),
  clock: {
    now: () => Date.now(),
    sleep: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  },
  random: () => Math.random(),
  log: (message) => console.error(message),
});

const k6Http: Http = {
  send: async (url, { method = 'GET', headers = {}, body = null, name, refusable = false, drop = false }) => {
    const responseType: ResponseType = drop ? 'none' : 'text';
    try {
      const response = await http.asyncRequest(method, url, body, {
        ...{ headers: { ...headers }, timeout, responseType, redirects: 0 },
        tags: { name },
        responseCallback: refusable ? successOrRefusal : success,
      });
      return { status: response.status, text: textOf(response.body), header: among(response.headers) };
    } catch {
      // No answer; k6 has counted it as failed already.
      return { status: 0, text: '', header: () => undefined };
    }
  },
};

const textOf = (body: unknown): string => (typeof body === 'string' ? body : '');

/** k6 spells names as Go does: `Etag`, `X-Svc-Error`. */
const among =
  (headers: Readonly<Record<string, string>>): Answer['header'] =>
  (name) =>
    Object.entries(headers).find(([spelt]) => spelt.toLowerCase() === name.toLowerCase())?.[1];

function createMeter(objectives: readonly ObjectiveName[]): Meter {
  const events = new Map(
    objectives.map((name) => [name, { good: new Rate(name), count: new Counter(eventsOf(name)) }]),
  );
  const times = new Map(trends.map((name) => [name, new Trend(name, true)]));
  const counts = new Map(counters.map((name) => [name, new Counter(name)]));
  return {
    event: (objective, good, tags) => {
      // What a test does not judge, such as its set-up, is not measured.
      events.get(objective)?.good.add(good, { ...tags });
      events.get(objective)?.count.add(1);
    },
    took: (what, ms) => times.get(what)?.add(ms),
    happened: (what) => counts.get(what)?.add(1),
  };
}
