import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DemoPlayback } from '@millrace/contract';
import { parseKeySet, verifyPlaybackToken } from '@millrace/domain';
import { apiConfig } from '../config.ts';
import { type Answer, createTenant, createTestApi, type TestApi } from '../testing/test-api.ts';

const keys = parseKeySet(`p1:${'p'.repeat(32)}`);
const videoId = 'vid_demo';
let api: TestApi;
beforeAll(async () => {
  api = await createTestApi({
    config: {
      ...{ DEMO_VIDEO_ID: videoId, DEMO_DOMAIN: 'www.example.com', PLAYBACK_KEYS: keys },
      // As it is unless configured.
      DEMO_RATE_PER_MINUTE: apiConfig.shape.DEMO_RATE_PER_MINUTE.parse(undefined),
    },
  });
  const { accountId, projectId } = await createTenant(api);
  await api.store.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
     values ($1, $2, $3, 'Demo', 'ready', 1, now(), now())`,
    [videoId, projectId, accountId],
  );
});
afterAll(() => api.close());

const ask = (query = ''): Promise<Answer<DemoPlayback>> =>
  api.ask<DemoPlayback>(`GET /v1/demo/playback${query}`, { headers: { origin: 'https://anywhere.example' } });
const nextMinute = (): void => api.travel(60_000);

describe('GET /v1/demo/playback', () => {
  it('gives anybody a token of ten minutes for the configured video and domain [DEM-201, DEM-202, DEM-203]', async () => {
    nextMinute();
    const { status, body, headers } = await ask('?videoId=vid_other&domain=evil.example');
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    expect({ ...body, token: '', expiresAt: '' }).toEqual({
      ...{ cdnUrl: 'https://cdn.example.com', videoId, token: '', expiresAt: '' },
    });
    const claims = verifyPlaybackToken(body.token, keys);
    expect(claims).toMatchObject({ kind: 'demo', videoId, domain: 'www.example.com' });
    expect(claims?.expiresAt.toISOString()).toBe(body.expiresAt);
    const lives = Date.parse(body.expiresAt) - api.now().getTime();
    expect([lives <= 600_000, lives > 590_000]).toEqual([true, true]);
  });

  it.each(['https://anywhere.example', 'http://localhost:3000', 'null'])(
    'may be read by a page of %s, also when it refuses [CRS-006]',
    async (origin) => {
      nextMinute();
      const asked = Array.from({ length: 31 }, () =>
        api.ask('GET /v1/demo/playback', { headers: { origin } }),
      );
      for (const { status, headers } of await Promise.all(asked)) {
        expect([200, 429]).toContain(status);
        expect(headers.get('access-control-allow-origin')).toBe('*');
        expect(headers.get('access-control-allow-credentials')).toBeNull();
      }
    },
  );

  it('is limited for each client [DEM-205]', async () => {
    nextMinute();
    const answers = await Promise.all(Array.from({ length: 32 }, () => ask()));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      ...Array.from({ length: 30 }, () => 200),
      ...[429, 429],
    ]);
    expect((await ask()).problem.code).toBe('rate_limited');
    nextMinute();
    expect((await ask()).status).toBe(200);
  });

  it('is 503 while the video does not play, and where nothing is configured [DEM-204]', async () => {
    nextMinute();
    await api.store.query(`update videos set status = 'held' where id = $1`, [videoId]);
    const held = await ask();
    expect([held.status, held.problem.code]).toEqual([503, 'not_configured']);
    await api.store.query(`update videos set status = 'ready' where id = $1`, [videoId]);
    const bare = await createTestApi();
    try {
      const { status, problem } = await bare.ask('GET /v1/demo/playback');
      expect([status, problem.code]).toEqual([503, 'not_configured']);
    } finally {
      await bare.close();
    }
  });
});
