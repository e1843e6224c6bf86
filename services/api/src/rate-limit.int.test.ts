import { afterEach, describe, expect, it } from '@jest/globals';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from './testing/test-api.ts';
import { type ApiConfig, apiConfig } from './config.ts';
import { createApi } from './service.ts';

let api: TestApi;
afterEach(() => api.close());

const limited = async (config: Partial<ApiConfig>): Promise<Tenant> => {
  api = await createTestApi({ config });
  // To the start of a window, which no test then leaves by itself.
  api.travel(60_000 - (api.now().getTime() % 60_000));
  return createTenant(api);
};
const from = (client: string): { headers: Record<string, string> } => ({
  headers: { 'x-forwarded-for': client },
});
const codes = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status);
const times = async (n: number, ask: () => Promise<Answer>): Promise<number[]> =>
  codes(await Promise.all(Array.from({ length: n }, ask))).sort();

describe('the limit of requests', () => {
  it('is exact over a minute and all of /v1, and says when to come back [RAT-004, RAT-005]', async () => {
    const me = await limited({ API_RATE_PER_MINUTE: 5 });
    const get = `GET /v1/projects/${me.projectId}`;
    expect(await times(4, () => api.ask(get, { bearer: me.full }))).toEqual([200, 200, 200, 200]);
    expect((await api.ask('GET /v1/nothing')).status).toBe(404);
    api.travel(20_000);
    const refused = await api.ask(get, { bearer: me.full });
    expect([refused.status, refused.problem.code]).toEqual([429, 'rate_limited']);
    const seconds = Number(refused.headers.get('retry-after'));
    expect([Number.isInteger(seconds), seconds > 30, seconds <= 40]).toEqual([true, true, true]);
    // Before any other check: not even the key is looked at.
    expect((await api.ask(get)).status).toBe(429);
    expect((await api.ask('GET /v1/nothing')).status).toBe(429);
    api.travel(40_000);
    expect((await api.ask(get, { bearer: me.full })).status).toBe(200);
  });

  it.each([
    ['/v1', 'v1', 'API_RATE_PER_MINUTE', 1_200],
    ['/auth', 'auth', 'AUTH_RATE_PER_MINUTE', 60],
  ] as const)(
    'of %s is as the contract says unless it is configured [RAT-001, RAT-002]',
    async (prefix, bucket, setting, most) => {
      await limited({ [setting]: apiConfig.shape[setting].parse(undefined) });
      // Well within the window, also when the machine's clock is set back a little.
      api.travel(20_000);
      const ask = (): Promise<Answer> => api.ask(`GET ${prefix}/nothing`);
      await ask();
      // As if other replicas had been asked in the next minute: all of them but two.
      const { rowCount } = await api.store.query(
        `update rate_windows set hits = $1, starts_at = starts_at + interval '1 minute' where bucket = $2`,
        [most - 2, bucket],
      );
      expect(rowCount).toBe(1);
      api.travel(60_000);
      expect(codes([await ask(), await ask(), await ask(), await ask()])).toEqual([404, 404, 429, 429]);
      const elsewhere = prefix === '/v1' ? '/auth' : '/v1';
      expect((await api.ask(`GET ${elsewhere}/nothing`)).status).toBe(404);
    },
  );

  it('counts neither preflights nor what is outside of /v1 [RAT-003]', async () => {
    const me = await limited({ API_RATE_PER_MINUTE: 1 });
    const path = `/v1/projects/${me.projectId}/uploads`;
    const headers = { origin: 'https://a.example', 'access-control-request-method': 'POST' };
    expect(await times(3, () => api.ask(`OPTIONS ${path}`, { headers }))).toEqual([204, 204, 204]);
    expect(await times(3, () => api.ask('OPTIONS /v1/nothing', { headers }))).toEqual([404, 404, 404]);
    expect(await times(3, () => api.ask('GET /health'))).toEqual([200, 200, 200]);
    expect((await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full })).status).toBe(200);
  });

  it('counts what cannot be read, and OPTIONS that is no preflight', async () => {
    await limited({ API_RATE_PER_MINUTE: 2 });
    expect((await api.ask('GET /v1/%')).status).toBe(400);
    expect((await api.ask('OPTIONS /v1/nothing')).status).toBe(404);
    expect((await api.ask('GET /v1/%')).problem.code).toBe('rate_limited');
  });

  it('refuses with the headers that let a page read the code [CRS-003, CRS-004]', async () => {
    const me = await limited({ API_RATE_PER_MINUTE: 1 });
    const start = (): Promise<Answer> =>
      api.ask(`POST /v1/projects/${me.projectId}/uploads`, {
        headers: { origin: 'https://a.example' },
        body: {},
      });
    await start();
    const { status, headers } = await start();
    expect([status, headers.get('access-control-allow-origin')]).toEqual([429, 'https://a.example']);
    expect(headers.get('access-control-expose-headers')).toContain('Retry-After');
  });

  it('is the client’s own, as the trusted proxies saw it, IPv6 by /64 [RAT-006, RAT-007]', async () => {
    await limited({ API_RATE_PER_MINUTE: 1, TRUSTED_PROXIES: 1 });
    const ask = async (client: string): Promise<number> =>
      (await api.ask('GET /v1/nothing', from(client))).status;
    expect(await ask('198.51.100.1')).toBe(404);
    expect(await ask('198.51.100.1')).toBe(429);
    expect(await ask('9.9.9.9, 198.51.100.1')).toBe(429);
    expect(await ask('198.51.100.2')).toBe(404);
    expect(await ask('2001:db8:1:1::1')).toBe(404);
    expect(await ask('2001:db8:1:1:ffff::2')).toBe(429);
    expect(await ask('2001:db8:1:2::1')).toBe(404);
  });

  it('does not believe the client’s own word without a trusted proxy [RAT-007]', async () => {
    await limited({ API_RATE_PER_MINUTE: 1 });
    expect((await api.ask('GET /v1/nothing', from('198.51.100.1'))).status).toBe(404);
    expect((await api.ask('GET /v1/nothing', from('198.51.100.2'))).status).toBe(429);
  });

  it('is one over all replicas [RAT-005]', async () => {
    const me = await limited({ API_RATE_PER_MINUTE: 10 });
    const replica = createApi({ ...api.deps });
    await replica.start(new AbortController().signal);
    try {
      const get = async (base: string): Promise<number> =>
        (
          await fetch(`${base}/v1/projects/${me.projectId}`, {
            headers: { authorization: `Bearer ${me.full}` },
          })
        ).status;
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => get(n % 2 ? api.url : replica.listening)),
      );
      expect(answers.filter((status) => status === 200)).toHaveLength(10);
      expect(answers.filter((status) => status === 429)).toHaveLength(10);
    } finally {
      await replica.stop();
    }
  });

  it('lets requests through when they cannot be counted [RAT-008]', async () => {
    await limited({ API_RATE_PER_MINUTE: 1 });
    await api.store.query('alter table rate_windows rename to rate_windows_away');
    expect(await times(3, () => api.ask('GET /v1/nothing'))).toEqual([404, 404, 404]);
  });
});
