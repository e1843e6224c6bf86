import { type ObjectiveName } from './objectives.ts';
import { type Wants } from './prepare.ts';
import { type Scenario } from './scenario.ts';
import { customerCall } from './scenarios/api-mix.ts';
import { hold } from './scenarios/hold.ts';
import { viewer } from './scenarios/playback.ts';
import { upload } from './scenarios/upload.ts';
import { storm } from './scenarios/webhook-storm.ts';
import { type Need, type Profile } from './settings.ts';

/** How often and how many at once, in k6's terms. `exec` is the scenario's name in `scenarios`. */
type Load =
  | { executor: 'shared-iterations'; vus: number; iterations: number; maxDuration: string }
  | { executor: 'constant-vus'; vus: number; duration: string; gracefulStop: string }
  | {
      executor: 'ramping-vus';
      startVUs: number;
      stages: Stage[];
      gracefulStop: string;
      gracefulRampDown: string;
    }
  | {
      executor: 'constant-arrival-rate';
      rate: number;
      timeUnit: string;
      duration: string;
      preAllocatedVUs: number;
      maxVUs: number;
      gracefulStop?: string;
    }
  | {
      executor: 'ramping-arrival-rate';
      startRate: number;
      timeUnit: string;
      stages: Stage[];
      preAllocatedVUs: number;
      maxVUs: number;
    };
interface Stage {
  target: number;
  duration: string;
}

interface Test {
  needs: readonly Need[];
  wants: Wants;
  /** Whether its scenarios upload the file; else only the set-up does. */
  uploads: boolean;
  objectives: readonly ObjectiveName[];
  /** Which scenarios run, and how: in full by how much that is scaled. An upload may take `readyMs` to be ready. */
  loads: Readonly<Record<Profile, (scale: number, readyMs: number) => Partial<Record<ScenarioName, Load>>>>;
}

export const scenarios = { customerCall, upload, viewer, hold, storm } satisfies Record<string, Scenario>;
export type ScenarioName = keyof typeof scenarios;

const api: readonly ObjectiveName[] = ['api_available', 'api_expected', 'completed'];
const playback: readonly ObjectiveName[] = ['playback_available', 'playback_accepted', 'playback_smooth'];

/** At least one. */
const times = (scale: number, count: number): number => Math.max(1, Math.round(scale * count));

const minuteMs = 60_000;
/** For what an upload does beside waiting until its video is ready. */
const sendingMs = 5 * minuteMs;
const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)}s`;

/** Each is an entry file of the same name. */
export const tests = {
  'api-mix': {
    ...{ needs: [], wants: { videos: 1, held: false }, uploads: false, objectives: api },
    loads: {
      smoke: () => ({ customerCall: steadily({ rate: 5, duration: '20s', atOnce: 10 }) }),
      // Customers call whether or not we answer: rates, not users who wait.
      full: (scale) => ({
        customerCall: {
          executor: 'ramping-arrival-rate',
          ...{ startRate: times(scale, 20), timeUnit: '1s' },
          ...{ preAllocatedVUs: times(scale, 100), maxVUs: times(scale, 1_000) },
          stages: [
            { target: times(scale, 200), duration: '2m' },
            { target: times(scale, 200), duration: '10m' },
            { target: times(scale, 400), duration: '1m' },
            { target: times(scale, 400), duration: '2m' },
          ],
        },
      }),
    },
  },
  upload: {
    ...{ needs: [], wants: { videos: 0, held: false }, uploads: true },
    objectives: [...api, 'ready_in_time'],
    loads: {
      smoke: (_, readyMs) => ({
        upload: {
          executor: 'shared-iterations',
          ...{ vus: 1, iterations: 2, maxDuration: seconds(2 * readyMs + sendingMs) },
        },
      }),
      full: (scale, readyMs) => ({
        upload: {
          executor: 'constant-arrival-rate',
          ...{ rate: times(scale, 6), timeUnit: '1m', duration: '30m' },
          // As many as may be on their way at once; the last ones are waited for, since one that is cut off counts nowhere.
          ...{
            preAllocatedVUs: times(scale, 10),
            maxVUs: times(scale, (6 * (readyMs + sendingMs)) / minuteMs),
          },
          gracefulStop: seconds(readyMs + sendingMs),
        },
      }),
    },
  },
  playback: {
    ...{ needs: [], wants: { videos: 1, held: false }, uploads: false },
    objectives: [...api, ...playback],
    loads: {
      smoke: () => ({ viewer: viewers(5, '30s') }),
      full: (scale) => ({
        viewer: {
          ...{ executor: 'ramping-vus', startVUs: 0, gracefulStop: '2m', gracefulRampDown: '2m' },
          stages: [
            { target: times(scale, 500), duration: '3m' },
            { target: times(scale, 500), duration: '10m' },
            // Everybody comes at once: a live talk is shared, a mail is sent out.
            { target: times(scale, 1_000), duration: '10s' },
            { target: times(scale, 1_000), duration: '5m' },
          ],
        },
      }),
    },
  },
  'hold-under-load': {
    ...{ needs: ['admin'], wants: { videos: 2, held: true }, uploads: false },
    objectives: [...api, ...playback, 'hold_in_time', 'hold_refused'],
    loads: {
      smoke: () => ({
        viewer: viewers(5, '30s'),
        hold: { executor: 'shared-iterations', vus: 1, iterations: 3, maxDuration: '5m' },
      }),
      full: (scale) => ({
        viewer: viewers(times(scale, 500), '15m'),
        customerCall: steadily({ rate: times(scale, 50), duration: '15m', atOnce: times(scale, 100) }),
        // One at a time: a second hold of the same video would hide the first one's end.
        hold: { executor: 'constant-vus', vus: 1, duration: '15m', gracefulStop: '3m' },
      }),
    },
  },
  'webhook-storm': {
    ...{ needs: ['webhooks'], wants: { videos: 0, held: false }, uploads: false },
    objectives: [...api, 'webhook_in_time', 'webhook_delivered'],
    loads: {
      smoke: () => ({
        storm: { executor: 'shared-iterations', vus: 1, iterations: 1, maxDuration: '5m' },
      }),
      full: (scale) => ({
        storm: { executor: 'constant-vus', vus: times(scale, 2), duration: '10m', gracefulStop: '2m' },
      }),
    },
  },
} as const satisfies Record<string, Test>;
export type TestName = keyof typeof tests;

const viewers = (vus: number, duration: string): Load => ({
  ...{ executor: 'constant-vus', vus, duration, gracefulStop: '2m' },
});

const steadily = ({ rate, duration, atOnce }: { rate: number; duration: string; atOnce: number }): Load => ({
  ...{ executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration },
  ...{ preAllocatedVUs: atOnce, maxVUs: 10 * atOnce },
});
