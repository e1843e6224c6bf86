import { describe, expect, it } from '@jest/globals';
import { thresholdsFor } from '../src/objectives.ts';
import { iterate, type Prepared } from '../src/scenario.ts';
import { type ScenarioName, scenarios, type TestName, tests } from '../src/tests.ts';
import { type Behaviour, createFakeWorld, type Reply, type Seen } from './fake-service.ts';
import { crossed } from './thresholds.ts';

const prepared: Prepared = {
  videos: ['vid_1'],
  held: 'vid_held',
  endpoints: { healthy: 'whe_1', troubled: ['whe_2', 'whe_3'] },
  uploaded: [],
};

/** Runs iterations of a scenario one after the other; `crossed` are the thresholds of the test that are not met. */
async function run(
  { test, scenario, iterations = 1 }: { test: TestName; scenario: ScenarioName; iterations?: number },
  behaviour: Behaviour = {},
  environment: Record<string, string> = {},
) {
  const made = createFakeWorld(behaviour, environment);
  const source = new ArrayBuffer(250);
  for (let i = 0; i < iterations; i += 1) {
    await iterate(made.world, scenarios[scenario], { prepared, source });
  }
  return { ...made, crossed: crossed(thresholdsFor(tests[test].objectives), made.samples) };
}

const when =
  (form: RegExp, reply: Reply) =>
  ({ method, path }: Seen): Reply | undefined =>
    form.test(`${method} ${path}`) ? reply : undefined;
const cdnRefusal = (code: string): Reply => ({ status: 403, headers: { 'x-svc-error': code } });

describe('the API mix', () => {
  const mix = { test: 'api-mix', scenario: 'customerCall', iterations: 20 } as const;

  it('crosses nothing when all is well', async () => {
    expect(await run(mix)).toMatchObject({ crossed: [], logged: [] });
  });

  it.each([
    ['a 5xx', { status: 500 }, ['api_available', 'api_expected', 'completed']],
    ['no answer', { status: 0 }, ['api_available', 'api_expected', 'completed']],
    ['the rate limit', { status: 429, body: { code: 'rate_limited' } }, ['api_expected', 'completed']],
    ['a refusal', { status: 403, body: { code: 'plan_limit_reached' } }, ['api_expected', 'completed']],
  ])('crosses what stands for it when there is %s', async (_, reply, expected) => {
    const { crossed: names } = await run(mix, { instead: () => reply });
    expect(names).toEqual(expected);
  });

  it('makes every call of the mix, by its share', async () => {
    const made = createFakeWorld();
    let at = 0;
    for (let i = 0; i < 100; i += 1, at += 0.01) {
      await scenarios.customerCall({ ...made.world, random: () => at }, prepared, null);
    }
    const count = (form: RegExp): number =>
      made.seen.filter(({ method, path }) => form.test(`${method} ${path}`)).length;
    expect([count(/playback-tokens/), count(/GET \S+\/videos\/vid_1$/)]).toEqual([45, 25]);
    for (const form of [/videos\?limit/, /\/domains/, /prj_1$/, /GET \S+endpoints$/, /upload-tok/, /PATCH/]) {
      expect(count(form)).toBeGreaterThan(0);
    }
  });

  it('says why a call failed, without the key', async () => {
    const { logged } = await run(
      { ...mix, iterations: 1 },
      { instead: () => ({ status: 403, body: { code: 'banned' } }) },
    );
    expect(logged).toEqual(['create playback token answered 403 banned']);
  });
});

describe('an upload', () => {
  const upload = { test: 'upload', scenario: 'upload' } as const;

  it('sends the file in the parts that it is asked for, waits and deletes the video', async () => {
    const parts = [1, 2, 3].map((partNumber) => ({
      partNumber,
      url: `https://store.test/part${partNumber}`,
    }));
    const started = { id: 'upl_1', video: { id: 'vid_1' }, partSizeBytes: 100, parts };
    const { seen, crossed: names } = await run(upload, {
      instead: when(/POST \S+\/uploads$/, { status: 201, body: started }),
    });
    expect(names).toEqual([]);
    const sizes = seen
      .filter(({ method }) => method === 'PUT')
      .map(({ body }) => (body as ArrayBuffer).byteLength);
    expect(sizes).toEqual([100, 100, 50]);
    expect(seen.find(({ path }) => path.endsWith('/complete'))?.body).toEqual({
      parts: [1, 2, 3].map((partNumber) => ({ partNumber, etag: '"e"' })),
    });
    expect(seen.at(-1)?.method).toBe('DELETE');
  });

  it.each([
    // The length is known when the video is ready: 120 s, so 600 s are in time.
    ['is in time at five lengths', 598_000, []],
    ['is late after that', 602_000, ['completed', 'ready_in_time']],
  ])('%s', async (_, encodingMs, expected) => {
    const { crossed: names } = await run(upload, { encodingMs }, { SOURCE_SECONDS: '120' });
    expect(names).toEqual(expected);
  });

  it('is waited for as long as the longest film may take', async () => {
    const lengthSeconds = 600;
    const longFilm = { encodingMs: 2_990_000, lengthSeconds };
    expect((await run(upload, longFilm, { SOURCE_SECONDS: '600' })).crossed).toEqual([]);
  });

  it('is judged by its own length, whatever the settings say', async () => {
    const { crossed: names } = await run(
      upload,
      { encodingMs: 400_000, lengthSeconds: 10 },
      { SOURCE_SECONDS: '600' },
    );
    expect(names).toEqual(['completed', 'ready_in_time']);
  });

  it('has five minutes when it is short', async () => {
    expect((await run(upload, { encodingMs: 298_000 })).crossed).toEqual([]);
    const { crossed: names, world } = await run(upload, { encodingMs: 1e9 });
    expect(names).toEqual(['completed', 'ready_in_time']);
    expect(world.clock.now()).toBeLessThan(310_000);
  });

  it('that is ready just too late is not in time', async () => {
    const instead = ({ method, path, atMs }: Seen): Reply | undefined => {
      if (method !== 'GET' || !/\/videos\/\w+$/.test(path)) return undefined;
      const isReady = atMs > 300_100;
      return { body: { status: isReady ? 'ready' : 'processing', durationSeconds: isReady ? 10 : null } };
    };
    expect((await run(upload, { instead })).crossed).toEqual(['completed', 'ready_in_time']);
  });

  it('that fails is not in time', async () => {
    const failed = { body: { id: 'vid_1', status: 'failed', durationSeconds: null } };
    const made = await run(upload, { instead: when(/GET \S+\/videos\//, failed) });
    expect(made.crossed).toEqual(['completed', 'ready_in_time']);
    expect(made.logged).toEqual(['a video was failed after 0 s']);
  });

  it('that storage refuses did not get to its end', async () => {
    const { crossed: names } = await run(upload, { instead: when(/^PUT/, { status: 503 }) });
    expect(names).toEqual(expect.arrayContaining(['completed']));
  });
});

describe('a viewer', () => {
  const viewer = { test: 'playback', scenario: 'viewer' } as const;
  const never = { SWITCH_EVERY: '0', SEEK_EVERY: '0' };
  const segmentsOf = (seen: readonly Seen[], form: RegExp): Seen[] =>
    seen.filter(({ path }) => form.test(path) && path.includes('seg-'));

  it('walks from the multivariant playlist to segments of the least bandwidth and of the sound', async () => {
    const { seen, crossed: names } = await run(viewer, {}, never);
    expect(names).toEqual([]);
    expect(seen.slice(1, 9).map(({ path }) => path.replace(/\?.*/, '').replace('/v/vid_1/', ''))).toEqual([
      'master.m3u8',
      ...['q1/index.m3u8', 'audio/index.m3u8', 'q1/init.mp4', 'audio/init.mp4'],
      ...['q1/seg-0.m4s', 'audio/seg-0.m4s', 'q1/seg-1.m4s'],
    ]);
  });

  it('loads 30 s ahead and then as fast as it plays', async () => {
    const { seen, world } = await run(viewer, {}, { ...never, WATCH_SECONDS: '60' });
    const times = segmentsOf(seen, /q1/).map(({ atMs }) => atMs);
    // Five segments of 6 s at once, one more when a second of the 30 is missing, and so on.
    expect(times.filter((atMs) => atMs < 1_000)).toHaveLength(6);
    expect(times.length).toBe(15);
    expect(world.clock.now()).toBeGreaterThanOrEqual(60_000);
    expect(world.clock.now()).toBeLessThan(61_000);
  });

  it('starts again at the end of the video, when that has played', async () => {
    const { seen } = await run(viewer, {}, { ...never, WATCH_SECONDS: '200' });
    const starts = segmentsOf(seen, /q1\/seg-0/).map(({ atMs }) => Math.round(atMs / 1_000));
    expect(starts).toEqual([0, 120]);
  });

  it('switches quality, and asks for a media playlist once', async () => {
    const { seen, samples } = await run(viewer, {}, { ...never, SWITCH_EVERY: '1', WATCH_SECONDS: '60' });
    expect(samples.get('quality_switches')?.length).toBeGreaterThan(3);
    // By bandwidth: q1, q2, q0.
    expect(segmentsOf(seen, /q2/).length).toBeGreaterThan(2);
    const playlists = seen
      .filter(({ path }) => /q\d\/index/.test(path))
      .map(({ path }) => path.replace(/\?.*/, ''));
    expect(playlists).toEqual([...new Set(playlists)]);
  });

  it('seeks', async () => {
    const { seen, samples } = await run(viewer, {}, { ...never, SEEK_EVERY: '2', WATCH_SECONDS: '20' });
    // random() is 0: it always seeks, to the first segment.
    expect(samples.get('seeks')?.length).toBeGreaterThan(2);
    expect(new Set(segmentsOf(seen, /q1/).map(({ path }) => /seg-\d+/.exec(path)?.[0]))).toEqual(
      new Set(['seg-0']),
    );
  });

  it('renews its token before it ends, and goes on with the new one', async () => {
    const environment = { ...never, WATCH_SECONDS: '150', TOKEN_SECONDS: '60', RENEW_BEFORE_SECONDS: '10' };
    const { seen, samples, crossed: names } = await run(viewer, {}, environment);
    expect(names).toEqual([]);
    expect(samples.get('token_renewals')).toHaveLength(2);
    const tokens = new Set(segmentsOf(seen, /q1/).map(({ path }) => /token=(\w+)/.exec(path)?.[1]));
    expect(tokens.size).toBe(3);
    const asked = seen.filter(({ path }) => path.endsWith('/playback-tokens')).map(({ atMs }) => atMs);
    expect(asked[1]).toBeGreaterThanOrEqual(50_000);
    expect(asked[1]).toBeLessThan(57_000);
  });

  it('is refused when it does not renew in time', async () => {
    const environment = { ...never, WATCH_SECONDS: '150', TOKEN_SECONDS: '60', RENEW_BEFORE_SECONDS: '0' };
    // With a service whose tokens end ten seconds early.
    const instead = ({ path, atMs }: Seen): Reply | undefined =>
      path.includes('seg-') && atMs > 50_000 && atMs < 60_000 ? cdnRefusal('token_expired') : undefined;
    const made = await run(viewer, { instead }, environment);
    expect(made.crossed).toEqual(['completed', 'playback_accepted']);
    expect(made.tagsOf('playback_accepted')).toContainEqual({ name: 'segment', code: 'token_expired' });
  });

  it.each([
    ['a 5xx', { status: 503, headers: { 'x-svc-error': 'state_unavailable' } }, 'playback_available'],
    ['no answer', { status: 0 }, 'playback_available'],
    ['a refusal', cdnRefusal('plan_limit_reached'), 'playback_accepted'],
  ])('crosses what stands for it when there is %s', async (_, reply, expected) => {
    const { crossed: names } = await run(viewer, { instead: when(/seg-3\./, reply) }, never);
    expect(names).toEqual(['completed', expected].sort());
  });

  it.each([
    ['as long as they play', 5_900, []],
    ['longer than they play', 6_500, ['playback_smooth']],
  ])('plays smoothly or not when segments take %s', async (_, tookMs, expected) => {
    const behaviour = { instead: (seen: Seen) => slow(seen, tookMs) };
    const { crossed: names, samples } = await run(viewer, behaviour, { ...never, WATCH_SECONDS: '60' });
    expect(names).toEqual(expected);
    expect(samples.get('stall') ?? []).toHaveLength(expected.length * 9);
  });
  const slow = ({ path }: Seen, tookMs: number): Reply | undefined =>
    path.includes('seg-') ? { tookMs } : undefined;

  it('stalls once when one segment is late', async () => {
    const late = when(/q1\/seg-3/, { tookMs: 50_000 });
    const { samples } = await run(viewer, { instead: late }, { ...never, WATCH_SECONDS: '90' });
    expect(samples.get('stall')).toHaveLength(1);
    // 18 s were loaded when it was asked for.
    expect(Math.round((samples.get('stall')?.[0] ?? 0) / 1_000)).toBe(32);
  });

  it('does not call the wait after a seek a stall', async () => {
    const behaviour = { instead: (seen: Seen) => slow(seen, 6_500) };
    const { samples } = await run(viewer, behaviour, { ...never, SEEK_EVERY: '1', WATCH_SECONDS: '60' });
    expect(samples.has('stall')).toBe(false);
    expect(samples.has('playback_smooth')).toBe(false);
  });
});

describe('a hold', () => {
  const hold = { test: 'hold-under-load', scenario: 'hold' } as const;
  /** Of viewers, who are another scenario of the same test. */
  const others = ['playback_smooth', 'playback_smooth_events'];
  const ofHolds = (names: readonly string[]): string[] => names.filter((name) => !others.includes(name));

  it('is placed, seen by its viewers, and lifted', async () => {
    const { seen, samples, crossed: names } = await run(hold);
    expect(ofHolds(names)).toEqual([]);
    const admin = seen.filter(({ path }) => path === '/admin/videos/vid_held/hold');
    expect(admin.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
    expect(samples.get('hold')?.[0]).toBeGreaterThan(500);
    expect(samples.get('hold')?.[0]).toBeLessThan(800);
    expect(seen.at(-1)?.path).toContain('master.m3u8');
  });

  it.each([
    ['in time', 29_000, []],
    ['late', 31_000, ['hold_in_time']],
    ['never', 1e9, ['hold_in_time', 'hold_refused', 'hold_refused_events']],
  ])('that works %s is judged so', async (_, propagationMs, expected) => {
    const { crossed: names, seen } = await run(hold, { propagationMs });
    expect(ofHolds(names)).toEqual(expected);
    expect(seen.some(({ method }) => method === 'DELETE')).toBe(true);
  });

  it('is watched until it works when answers are slow', async () => {
    const late = { body: '', tookMs: 3_000 };
    const instead = ({ path, atMs }: Seen): Reply | undefined =>
      path.includes('seg-') && atMs > 1_000 && atMs < 20_000 ? late : undefined;
    const { samples } = await run(hold, { instead });
    expect(samples.get('hold')?.[0]).toBeGreaterThan(15_000);
    expect(samples.get('hold_in_time')).toEqual([1]);
  });

  it('that one of many CDN processes ignores is not in time', async () => {
    let asked = 0;
    const instead = ({ path }: Seen): Reply | undefined =>
      path.includes('seg-') && (asked += 1) % 7 === 0 ? { body: '' } : undefined;
    expect(ofHolds((await run(hold, { instead })).crossed)).toEqual(['hold_in_time']);
  });

  it('must be refused as a hold', async () => {
    const instead = ({ path, atMs }: Seen): Reply | undefined =>
      path.includes('token=') && atMs > 1_000 && atMs < 1_500 ? cdnRefusal('token_invalid') : undefined;
    expect(ofHolds((await run(hold, { instead })).crossed)).toEqual(['hold_refused']);
  });

  it('is lifted too when it could not be observed', async () => {
    const made = await run(hold, { instead: when(/^POST \/admin/, { status: 500 }) });
    expect(ofHolds(made.crossed)).toContain('completed');
    expect(made.seen.some(({ method }) => method === 'DELETE')).toBe(true);
  });

  it('after which nothing plays again did not get to its end', async () => {
    const made = await run(hold, { instead: when(/^DELETE \/admin/, {}) });
    expect(ofHolds(made.crossed)).toEqual(['completed']);
    expect(made.logged).toEqual(['a video does not play after its hold']);
  });
});

describe('a storm', () => {
  const storm = { test: 'webhook-storm', scenario: 'storm' } as const;

  it('hits every endpoint, and reads the whole log of the healthy one', async () => {
    const { seen, samples, crossed: names } = await run(storm);
    expect(names).toEqual([]);
    for (const id of ['whe_1', 'whe_2', 'whe_3']) {
      expect(seen.filter(({ path }) => path.endsWith(`${id}/test`))).toHaveLength(10);
    }
    expect(samples.get('webhook_in_time')).toHaveLength(10);
    expect(samples.get('webhook_first_attempt')).toEqual(Array(10).fill(50));
  });

  it.each([
    ['in time', 15_000, []],
    ['late', 15_001, ['webhook_in_time']],
    ['never tried', 1e9, ['webhook_in_time', 'webhook_delivered']],
  ])('is judged when its events are %s', async (_, attemptMs, expected) => {
    expect((await run(storm, { attemptMs })).crossed.sort()).toEqual([...expected].sort());
  });

  it('reads no more of the log than it has to', async () => {
    const { seen } = await run({ ...storm, iterations: 2 });
    // Ten of its own, four a page: in one look while they wait and in one when they are over.
    expect(seen.filter(({ path }) => path.includes('/deliveries'))).toHaveLength(2 * 2 * 3);
  });

  it('counts a delivery that took two tries, or failed, as none at the first', async () => {
    for (const end of [{ attempts: 2 }, { status: 'failed' }]) {
      const instead = (seen: Seen): Reply | undefined => {
        if (!seen.path.includes('deliveries')) return undefined;
        const row = {
          status: 'delivered',
          attempts: 1,
          createdAt: '2030-01-01T00:00:00.000Z',
          lastAttemptAt: '2030-01-01T00:00:00.050Z',
        };
        const data = [...Array(40).keys()].map((i) => ({ ...row, id: `del_${i}`, ...end }));
        return { body: { data, nextCursor: null } };
      };
      expect((await run(storm, { instead })).crossed).toEqual(['webhook_delivered']);
    }
  });
});

describe('a test whose scenarios never ran', () => {
  it.each(Object.entries(tests))('%s crosses every threshold', (_, { objectives }) => {
    const thresholds = thresholdsFor(objectives);
    expect(crossed(thresholds, new Map())).toEqual(Object.keys(thresholds));
  });
});
