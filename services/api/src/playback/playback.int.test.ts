import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PlaybackTokenResource, type PreviewTokenResource } from '@millrace/contract';
import { parseKeySet, verifyPlaybackToken } from '@millrace/domain';
import { seedVideo } from '../testing/seed-video.ts';
import {
  adminToken,
  type Answer,
  createTenant,
  createTestApi,
  internalSecret,
  type Tenant,
  type TestApi,
} from '../testing/test-api.ts';

const keys = parseKeySet(`p1:${'p'.repeat(32)}`);

const dashboardHosts = ['app.example.com', 'app.example.net'];

let api: TestApi;
let me: Tenant;
let domain: string;
let count = 0;

beforeAll(async () => {
  api = await createTestApi({ config: { PLAYBACK_KEYS: keys, DASHBOARD_HOSTS: dashboardHosts } });
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
  domain = await verified(me);
});

async function verified({ projectId }: Tenant): Promise<string> {
  const hostname = `site${++count}.example.com`;
  await api.operator.addDomain({ projectId, hostname, verified: true });
  return hostname;
}

const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const ask = (
  videoId: string,
  body: object = {},
  bearer = me.playback,
): Promise<Answer<PlaybackTokenResource>> =>
  api.ask<PlaybackTokenResource>(`POST /v1/projects/${me.projectId}/videos/${videoId}/playback-tokens`, {
    bearer,
    body: { domain, ...body },
  });

describe('a playback token', () => {
  it('names one video, one domain and its end, and comes in the URLs that need it [PBT-003, PBT-004, PBT-005]', async () => {
    const videoId = await seedVideo(api.store, me, { durationMs: 90_500 });
    const before = api.now().getTime();
    const { status, body } = await ask(videoId);
    expect(status).toBe(201);
    const { token, expiresAt } = body;
    const claims = verifyPlaybackToken(token, keys);
    expect(claims).toEqual({ kind: 'playback', videoId, domain, expiresAt: new Date(expiresAt) });
    const lifeMs = Date.parse(expiresAt) - before;
    expect(lifeMs).toBeGreaterThanOrEqual(3_691_000);
    expect(lifeMs).toBeLessThan(3_691_000 + 10_000);
    expect(body).toEqual({
      token,
      expiresAt,
      embedUrl: `https://cdn.example.com/e/${videoId}?token=${token}`,
      thumbnailUrl: `https://cdn.example.com/v/${videoId}/poster.jpg?token=${token}`,
      playlistUrl: `https://cdn.example.com/v/${videoId}/master.m3u8?token=${token}`,
    });
  });

  it.each([60, 86_400])('lives %d seconds when asked to [PBT-202]', async (expiresInSeconds) => {
    const before = api.now().getTime();
    const { body } = await ask(await seedVideo(api.store, me), { expiresInSeconds });
    const lifeMs = Date.parse(body.expiresAt) - before;
    expect(lifeMs).toBeGreaterThanOrEqual(expiresInSeconds * 1000);
    expect(lifeMs).toBeLessThan(expiresInSeconds * 1000 + 10_000);
  });

  it('has a playlist URL only on plans with white label [PBT-001, PBT-002]', async () => {
    const videoId = await seedVideo(api.store, me);
    for (const [planId, planStatus, has] of [
      ['pro', 'active', true],
      ['starter', 'active', false],
      ['free', 'active', false],
      ['pro', 'canceled', false],
    ] as const) {
      await api.operator.setPlan({ accountId: me.accountId, planId, planStatus });
      const { status, body } = await ask(videoId);
      expect(status).toBe(201);
      const fields = ['embedUrl', 'expiresAt', 'thumbnailUrl', 'token'];
      expect(Object.keys(body).toSorted()).toEqual(has ? [...fields, 'playlistUrl'].toSorted() : fields);
    }
  });

  it('is for full keys and sessions too, takes any spelling of the domain, and ignores viewerIp [PBT-206]', async () => {
    const videoId = await seedVideo(api.store, me);
    const upper = `${domain.toUpperCase()}.`;
    const { status, body } = await ask(videoId, { domain: upper, viewerIp: '192.0.2.1' }, me.full);
    expect(status).toBe(201);
    expect(verifyPlaybackToken(body.token, keys)?.domain).toBe(domain);
    const path = `POST /v1/projects/${me.projectId}/videos/${videoId}/playback-tokens`;
    expect((await api.ask(path, { cookie: me.cookie, body: { domain } })).status).toBe(201);
  });
});

describe('a playback token that was given', () => {
  it.each(['removed', 'lapsed'])(
    'stays good when its domain is %s: the CDN hears nothing of it [DOM-105]',
    async (how) => {
      const videoId = await seedVideo(api.store, me);
      const { body } = await ask(videoId);
      const state = async (): Promise<unknown> =>
        (
          await api.ask(`GET internal:/internal/playback-state/${videoId}`, {
            headers: { 'x-internal-secret': internalSecret },
          })
        ).body;
      const before = await state();
      await api.store.query('delete from outbox');
      const { rows } = await api.store.query<{ id: string }>('select id from domains where hostname = $1', [
        domain,
      ]);
      const path = `/v1/projects/${me.projectId}/domains/${rows[0]?.id ?? ''}`;
      if (how === 'removed')
        expect(outcome(await api.ask(`DELETE ${path}`, { bearer: me.full }))).toBe('204');
      else await api.store.query(`update domains set status = 'lapsed' where hostname = $1`, [domain]);
      expect(outcome(await ask(videoId))).toBe('403 domain_not_verified');
      expect(await state()).toEqual(before);
      expect((await api.store.query('select from outbox')).rowCount).toBe(0);
      const expiresAt = new Date(body.expiresAt);
      expect(verifyPlaybackToken(body.token, keys)).toEqual({ kind: 'playback', videoId, domain, expiresAt });
    },
  );
});

describe('no playback token', () => {
  it('for a domain that is not verified on this very project, now [PBT-201, DOM-103]', async () => {
    const videoId = await seedVideo(api.store, me);
    const pending = `pending${++count}.example.com`;
    await api.operator.addDomain({ projectId: me.projectId, hostname: pending });
    const theirs = await verified(await createTenant(api));
    for (const other of ['unknown.example.com', `sub.${domain}`, pending, theirs]) {
      const { status, problem } = await ask(videoId, { domain: other });
      expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([
        403,
        'domain_not_verified',
        'domain',
      ]);
    }
    await api.store.query(`update domains set status = 'lapsed' where hostname = $1`, [domain]);
    expect(outcome(await ask(videoId))).toBe('403 domain_not_verified');
  });

  it.each(['uploading', 'processing', 'failed'] as const)(
    'for a video that is %s [PBT-204]',
    async (status) => {
      expect(outcome(await ask(await seedVideo(api.store, me, { status })))).toBe('409 video_not_ready');
    },
  );

  it('for a held video, until the hold ends [PBT-204]', async () => {
    const videoId = await seedVideo(api.store, me);
    const hold = `internal:/admin/videos/${videoId}/hold`;
    await api.ask(`POST ${hold}`, { bearer: adminToken, body: {} });
    expect(outcome(await ask(videoId))).toBe('409 video_not_ready');
    await api.ask(`DELETE ${hold}`, { bearer: adminToken });
    expect(outcome(await ask(videoId))).toBe('201');
  });

  it('for a free account that has used its watched minutes in this period [PBT-205]', async () => {
    await api.operator.setPlan({ accountId: me.accountId, planId: 'free' });
    const videoId = await seedVideo(api.store, me);
    const watched = (ms: number): Promise<unknown> =>
      api.store.query('update usage set watched_ms = $2 where account_id = $1', [me.accountId, ms]);
    await watched(5_000 * 60_000 - 1);
    expect(outcome(await ask(videoId))).toBe('201');
    await watched(5_000 * 60_000);
    expect(outcome(await ask(videoId))).toBe('403 plan_limit_reached');
    await api.store.query(
      `update usage set period_start = period_start - interval '2 months', period_end = period_end - interval '2 months'
       where account_id = $1`,
      [me.accountId],
    );
    expect(outcome(await ask(videoId))).toBe('201');
    await watched(600_000 * 60_000);
    await api.operator.setPlan({ accountId: me.accountId, planId: 'pro' });
    expect(outcome(await ask(videoId))).toBe('201');
  });

  it.each<[object, string]>([
    [{ domain: undefined }, 'domain'],
    [{ domain: 'https://example.com' }, 'domain'],
    [{ domain: 'example.com:443' }, 'domain'],
    [{ domain: '192.0.2.1' }, 'domain'],
    [{ expiresInSeconds: 59 }, 'expiresInSeconds'],
    [{ expiresInSeconds: 86_401 }, 'expiresInSeconds'],
    [{ expiresInSeconds: 100.5 }, 'expiresInSeconds'],
    [{ expiresInSeconds: '100' }, 'expiresInSeconds'],
    [{ ttl: 100 }, 'ttl'],
  ])('for the body %j: 400 naming the field', async (body, path) => {
    const { status, problem } = await ask(await seedVideo(api.store, me), body);
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });

  it('ever in a log', async () => {
    const { body } = await ask(await seedVideo(api.store, me));
    expect(api.log.text()).not.toContain(body.token);
  });
});

describe('a preview token', () => {
  type Headers = Record<string, string>;
  const path = (videoId: string): string =>
    `POST /v1/projects/${me.projectId}/videos/${videoId}/preview-token`;
  const preview = (videoId: string, headers: Headers = {}): Promise<Answer<PreviewTokenResource>> =>
    api.ask<PreviewTokenResource>(path(videoId), { cookie: me.cookie, headers });

  it('plays for an hour on a dashboard host, and its URL is without it [PVT-001, PVT-002, PVT-003]', async () => {
    const videoId = await seedVideo(api.store, me);
    const before = api.now().getTime();
    const { status, body } = await preview(videoId);
    expect(status).toBe(201);
    const { token, expiresAt } = body;
    expect(body).toEqual({ token, expiresAt, embedUrl: `https://cdn.example.com/e/${videoId}` });
    const claims = { kind: 'preview', videoId, domain: 'app.example.com', expiresAt: new Date(expiresAt) };
    expect(verifyPlaybackToken(token, keys)).toEqual(claims);
    const lifeMs = Date.parse(expiresAt) - before;
    expect(lifeMs).toBeGreaterThanOrEqual(3_600_000);
    expect(lifeMs).toBeLessThan(3_600_000 + 10_000);
    expect(api.log.text()).not.toContain(token);
  });

  it.each<[string, Headers, string]>([
    ['the first dashboard', { origin: 'https://app.example.com' }, 'app.example.com'],
    ['another dashboard', { origin: 'https://App.example.net' }, 'app.example.net'],
    ['the API’s own pages', { origin: 'https://api.example.com' }, 'app.example.com'],
    ['no origin', {}, 'app.example.com'],
    ['a Referer, which says nothing', { referer: 'https://app.example.net/videos' }, 'app.example.com'],
  ])('asked for by %s is for the host that frames it [PVT-207]', async (_who, headers, domain) => {
    const { body } = await preview(await seedVideo(api.store, me), headers);
    expect(verifyPlaybackToken(body.token, keys)?.domain).toBe(domain);
  });

  it('takes no domain from its caller: no body counts, and no other origin [PVT-202, CNV-011]', async () => {
    const videoId = await seedVideo(api.store, me);
    const asked = { cookie: me.cookie, body: { domain, expiresInSeconds: 86_400 } };
    const { status, body } = await api.ask<PreviewTokenResource>(path(videoId), asked);
    expect(status).toBe(201);
    expect(verifyPlaybackToken(body.token, keys)?.domain).toBe('app.example.com');
    for (const origin of [
      `https://${domain}`,
      'https://x.app.example.com',
      'http://app.example.com',
      'null',
    ]) {
      expect(outcome(await preview(videoId, { origin }))).toBe('401 unauthorized');
    }
  });

  it('may be read by the dashboard’s page, with its cookie [CRS-005]', async () => {
    const { headers } = await preview(await seedVideo(api.store, me), { origin: 'https://app.example.net' });
    expect(headers.get('access-control-allow-origin')).toBe('https://app.example.net');
    expect(headers.get('access-control-allow-credentials')).toBe('true');
  });

  it('is for the session of the account alone [PVT-201, PVT-204]', async () => {
    const videoId = await seedVideo(api.store, me);
    expect(outcome(await api.ask(path(videoId)))).toBe('401 unauthorized');
    expect(outcome(await api.ask(path(videoId), { bearer: me.full }))).toBe('401 unauthorized');
    expect(outcome(await api.ask(path(videoId), { bearer: me.playback }))).toBe('403 insufficient_scope');
    const other = await createTenant(api);
    expect(outcome(await api.ask(path(videoId), { cookie: other.cookie }))).toBe('404 not_found');
    const elsewhere = await api.operator.createProject({ accountId: me.accountId, name: 'Other' });
    const moved = path(videoId).replace(me.projectId, elsewhere.id);
    expect(outcome(await api.ask(moved, { cookie: me.cookie }))).toBe('404 not_found');
  });

  it.each(['uploading', 'processing', 'failed'] as const)(
    'is not made of a video that is %s [PVT-206]',
    async (status) => {
      expect(outcome(await preview(await seedVideo(api.store, me, { status })))).toBe('409 video_not_ready');
    },
  );

  it('is not made of a held or deleted video, nor where the free minutes are used up [PVT-206, PVT-208]', async () => {
    const videoId = await seedVideo(api.store, me);
    const hold = `internal:/admin/videos/${videoId}/hold`;
    await api.ask(`POST ${hold}`, { bearer: adminToken, body: {} });
    expect(outcome(await preview(videoId))).toBe('409 video_not_ready');
    await api.ask(`DELETE ${hold}`, { bearer: adminToken });
    await api.operator.setPlan({ accountId: me.accountId, planId: 'free' });
    await api.store.query('update usage set watched_ms = $2 where account_id = $1', [me.accountId, 3e8]);
    expect(outcome(await preview(videoId))).toBe('403 plan_limit_reached');
    await api.ask(`DELETE internal:/admin/videos/${videoId}`, { bearer: adminToken });
    expect(outcome(await preview(videoId))).toBe('404 not_found');
  });

  it('needs a dashboard [PVT-205]', async () => {
    const { DASHBOARD_HOSTS } = api.deps.config;
    api.deps.config.DASHBOARD_HOSTS = [];
    try {
      expect(outcome(await preview(await seedVideo(api.store, me)))).toBe('503 not_configured');
    } finally {
      api.deps.config.DASHBOARD_HOSTS = DASHBOARD_HOSTS;
    }
  });
});
