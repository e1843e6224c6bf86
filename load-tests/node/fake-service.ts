import { readSettings } from '../src/settings.ts';
import { type Answer, type Asking, type Http, type World } from '../src/world.ts';
import { createSampler } from './thresholds.ts';
import { createVirtualClock } from './virtual-clock.ts';

/** A request as the service sees it. */
export interface Seen {
  method: string;
  /** Path and query. */
  path: string;
  body: unknown;
  origin: string | undefined;
  atMs: number;
}

/** How the service answers; what is left out is 200, nothing, no header, and 5 ms. */
export interface Reply {
  status?: number;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  tookMs?: number;
}

/** How a service in memory behaves, and what of it is changed. */
export interface Behaviour {
  /** From the completed upload until a video is ready. */
  encodingMs?: number;
  /** Length of a video, which is known when that is ready; 120 unless told. */
  lengthSeconds?: number;
  /** From a hold until it stops playback. */
  propagationMs?: number;
  /** From an event until the first attempt at its delivery. */
  attemptMs?: number;
  /** An answer in place of the service's own, and how long it takes; undefined leaves the request to the service. */
  instead?: (seen: Seen) => Reply | undefined;
}

const segmentSeconds = 6;
const segmentCount = 20;
/** The service answers with the time of day; its clock is ahead of the callers'. */
const epochMs = Date.UTC(2030, 0, 1);
const stamp = (atMs: number): string => new Date(epochMs + atMs).toISOString();

/** A world whose service is in memory and whose time does not have to be waited for. */
export function createFakeWorld(behaviour: Behaviour = {}, environment: Record<string, string> = {}) {
  const clock = createVirtualClock();
  const { meter, samples, tagsOf } = createSampler();
  const seen: Seen[] = [];
  const logged: string[] = [];
  const answer = createService(behaviour);
  const http: Http = {
    send: async (url, { method = 'GET', body, headers = {} }: Asking) => {
      const path = /^https:\/\/[^/]+(.*)$/.exec(url)?.[1] ?? '';
      const parsed: unknown = typeof body === 'string' ? JSON.parse(body) : body;
      const request = { method, path, body: parsed, origin: headers['origin'], atMs: clock.now() };
      seen.push(request);
      const reply = behaviour.instead?.(request) ?? answer(request);
      await clock.sleep(reply.tookMs ?? 5);
      return answerOf(reply);
    },
  };
  const settings = readSettings(
    {
      ...{ API_URL: 'https://api.test', PROJECT_ID: 'prj_1', API_KEY: 'svk_1', DOMAIN: 'site.example' },
      ...{ ADMIN_URL: 'https://admin.test', ADMIN_TOKEN: 'secret', WEBHOOK_URL: 'https://hooks.example' },
      ...environment,
    },
    ['admin', 'webhooks'],
  );
  const log = (message: string): void => void logged.push(message);
  const world: World = { http, clock, meter, settings, log, random: () => 0 };
  return { world, samples, tagsOf, seen, logged };
}

function answerOf({ status = 200, body, headers = {} }: Reply): Answer {
  const text = body === undefined || typeof body === 'string' ? (body ?? '') : JSON.stringify(body);
  return { status, text, header: (name) => headers[name.toLowerCase()] };
}

const refusal = (status: number, code: string): Reply => ({
  ...{ status, body: { code }, headers: { 'x-svc-error': code } },
});

/** Remembers uploads, holds and deliveries, and answers as the contract says. */
function createService(behaviour: Behaviour) {
  const { encodingMs = 3_000, lengthSeconds = 120, propagationMs = 800, attemptMs = 50 } = behaviour;
  const readyAt = new Map<string, number>();
  const tokenEnds = new Map<string, number>();
  const deliveries: { id: string; endpoint: string; atMs: number }[] = [];
  let heldAt = Infinity;
  let made = 0;
  const next = (prefix: string): string => `${prefix}_${(made += 1)}`;

  const video = (id: string, atMs: number): object => {
    const isReady = atMs >= (readyAt.get(id) ?? 0);
    return { id, status: isReady ? 'ready' : 'processing', durationSeconds: isReady ? lengthSeconds : null };
  };
  const delivery = (row: (typeof deliveries)[number], nowMs: number): object => {
    const isOver = nowMs >= row.atMs + attemptMs;
    const lastAttemptAt = isOver ? stamp(row.atMs + attemptMs) : null;
    const [status, attempts] = isOver ? ['delivered', 1] : ['pending', 0];
    return { id: row.id, createdAt: stamp(row.atMs), status, attempts, lastAttemptAt };
  };

  const routes: [RegExp, (request: Seen, id: string) => Reply][] = [
    [
      /^POST \S+\/uploads$/,
      () => {
        const [id, upload] = [next('vid'), next('upl')];
        readyAt.set(upload, 0);
        const parts = [{ partNumber: 1, url: 'https://store.test/part' }];
        return { status: 201, body: { id: upload, video: { id }, partSizeBytes: 100, parts } };
      },
    ],
    [/^PUT \/part/, () => ({ headers: { etag: '"e"' } })],
    [
      /^POST \S+\/uploads\/(\w+)\/complete/,
      ({ atMs }) => {
        const id = next('vid');
        readyAt.set(id, atMs + encodingMs);
        return { body: video(id, atMs) };
      },
    ],
    [
      /^POST \S+\/videos\/(\w+)\/playback-tokens/,
      ({ body, atMs }, id) => {
        const token = next('token');
        tokenEnds.set(token, atMs + 1_000 * (body as { expiresInSeconds: number }).expiresInSeconds);
        return { status: 201, body: { token, embedUrl: `https://cdn.test/e/${id}?token=${token}` } };
      },
    ],
    [/^POST \S+\/upload-tokens/, () => ({ status: 201 })],
    [/^PATCH /, () => ({})],
    [
      /^(?:POST|DELETE) \/admin\/videos\/(\w+)\/hold/,
      ({ method, atMs }) => {
        heldAt = method === 'POST' ? atMs : Infinity;
        return {};
      },
    ],
    [/^DELETE /, () => ({ status: 204 })],
    [
      /^POST \S+\/webhook-endpoints\/(\w+)\/test/,
      ({ atMs }, endpoint) => {
        const row = { id: next('del'), endpoint, atMs };
        deliveries.unshift(row);
        return { status: 202, body: delivery(row, atMs) };
      },
    ],
    [
      /^GET \S+\/webhook-endpoints\/(\w+)\/deliveries/,
      ({ path, atMs }, endpoint) => {
        const rows = deliveries.filter((row) => row.endpoint === endpoint);
        const from = Number(/cursor=(\d+)/.exec(path)?.[1] ?? 0);
        const data = rows.slice(from, from + 4).map((row) => delivery(row, atMs));
        return { body: { data, nextCursor: from + 4 < rows.length ? String(from + 4) : null } };
      },
    ],
    [/^POST \S+\/webhook-endpoints$/, () => ({ status: 201, body: { id: next('whe') } })],
    [/^GET \S+\/videos\/(\w+)$/, ({ atMs }, id) => ({ body: video(id, atMs) })],
    [/^GET \/v1\//, () => ({ body: { data: [], nextCursor: null } })],
    [/^GET \/v\/(\w+)\//, (request, id) => play(request, id)],
  ];
  const play = ({ path, origin, atMs }: Seen, id: string): Reply => {
    const end = tokenEnds.get(/token=(\w+)/.exec(path)?.[1] ?? '');
    if (end === undefined) return refusal(403, 'token_invalid');
    if (atMs >= end) return refusal(403, 'token_expired');
    if (origin !== 'https://site.example') return refusal(403, 'domain_mismatch');
    if (id === 'vid_held' && atMs >= heldAt + propagationMs) return refusal(403, 'video_unavailable');
    return { body: fileOf(path) };
  };
  return (request: Seen): Reply => {
    const line = `${request.method} ${request.path}`;
    for (const [form, reply] of routes) {
      const match = form.exec(line);
      if (match) return reply(request, match[1] ?? '');
    }
    return refusal(404, 'not_found');
  };
}

function fileOf(path: string): string {
  const query = path.slice(path.indexOf('?'));
  if (path.includes('master.m3u8')) {
    const variants = [2_000_000, 600_000, 1_000_000].map(
      (bandwidth, i) => `#EXT-X-STREAM-INF:BANDWIDTH=${bandwidth}\nq${i}/index.m3u8${query}`,
    );
    const sound = `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="audio/index.m3u8${query}"`;
    return ['#EXTM3U', sound, ...variants].join('\n');
  }
  if (!path.includes('index.m3u8')) return '';
  const segments = Array.from(
    { length: segmentCount },
    (_, i) => `#EXTINF:${segmentSeconds},\nseg-${i}.m4s${query}`,
  );
  return ['#EXTM3U', `#EXT-X-MAP:URI="init.mp4${query}"`, ...segments, '#EXT-X-ENDLIST'].join('\n');
}
