import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type AccountPlan, type PlanResource, type WhitelistEntry } from '@millrace/contract';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

const secret = 's'.repeat(40);
let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi({ config: { BILLING_CALLBACK_SECRETS: new Map([['paytabs', secret]]) } });
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api, 'free');
});
const get = async <Body>(path: string): Promise<Body> =>
  (await api.ask<Body>(`GET ${path}`, { cookie: me.cookie })).body;

describe('GET /v1/billing/plan', () => {
  it('says what the plan allows and what is used, floored from exact sums [MET-003]', async () => {
    await api.store.query(
      `update usage set stored_ms = 61_999, upload_ms = 5, watched_ms = 119_999 where account_id = $1`,
      [me.accountId],
    );
    await api.operator.addDomain({
      projectId: me.projectId,
      hostname: `d${me.projectId.slice(4).toLowerCase()}.example.com`,
      verified: true,
    });
    const plan = await get<AccountPlan>('/v1/billing/plan');
    expect(plan).toMatchObject({
      ...{ plan: { id: 'free', name: 'Free' }, status: 'active' },
      limits: {
        ...{ storedSeconds: 36_000, uploadSecondsPerPeriod: 18_000, watchedMinutesPerPeriod: 5_000 },
        ...{ verifiedDomains: 1, projects: 1, maxQuality: '720p', whiteLabel: false },
      },
      usage: { storedSeconds: 61, watchedMinutes: 1, verifiedDomains: 1, overageMinutes: 0 },
    });
    expect(Date.parse(plan.currentPeriod.start)).toBeLessThanOrEqual(api.now().getTime());
    expect(Date.parse(plan.currentPeriod.end)).toBeGreaterThan(api.now().getTime());
  });

  it.each([
    [49_990 * 60_000, 0],
    [50_000 * 60_000, 0],
    [50_000 * 60_000 + 59_999, 0],
    [50_003 * 60_000, 3],
  ])(
    'counts %d ms of watched time on a paid plan as %d minutes over [MET-004]',
    async (watchedMs, overage) => {
      me = await createTenant(api, 'starter');
      await api.store.query('update usage set watched_ms = $2 where account_id = $1', [
        me.accountId,
        watchedMs,
      ]);
      expect((await get<AccountPlan>('/v1/billing/plan')).usage.overageMinutes).toBe(overage);
    },
  );

  it('shows free’s limits for a canceled account, under its own plan’s name', async () => {
    me = await createTenant(api, 'pro');
    await api.store.query(`update accounts set plan_status = 'canceled' where id = $1`, [me.accountId]);
    const { plan, status, limits } = await get<AccountPlan>('/v1/billing/plan');
    expect([plan.id, status, limits.maxQuality, limits.projects]).toEqual(['pro', 'canceled', '720p', 1]);
  });
});

describe('GET /v1/billing/plans', () => {
  it('lists the paid plans with their prices in halalas', async () => {
    const { data } = await get<{ data: PlanResource[] }>('/v1/billing/plans');
    expect(data.map(({ id, price }) => [id, price])).toEqual([
      ['starter', { amount: 9_900, currency: 'SAR', interval: 'month' }],
      ['pro', { amount: 29_900, currency: 'SAR', interval: 'month' }],
      ['agency', { amount: 99_900, currency: 'SAR', interval: 'month' }],
    ]);
    expect(data.at(-1)?.limits).toEqual({
      ...{ storedSeconds: null, uploadSecondsPerPeriod: null, watchedMinutesPerPeriod: null },
      ...{ verifiedDomains: null, projects: null, maxQuality: '2160p', whiteLabel: true },
    });
  });
});

describe('the whitelist', () => {
  const join = (body: unknown): Promise<Answer<{ data: WhitelistEntry }>> =>
    api.ask<{ data: WhitelistEntry }>('POST /v1/billing/whitelist', { cookie: me.cookie, body });

  it('takes an account’s wish; a repeat refreshes the address and keeps the time', async () => {
    const first = await join({ planId: 'pro', email: 'a@example.com' });
    const second = await join({ planId: 'pro', email: 'b@example.com' });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body.data).toEqual({ ...first.body.data, email: 'b@example.com' });
    await join({ planId: 'agency', email: 'a@example.com' });
    const { data } = await get<{ data: WhitelistEntry[] }>('/v1/billing/whitelist');
    expect(data.map(({ planId, email }) => [planId, email])).toEqual([
      ['pro', 'b@example.com'],
      ['agency', 'a@example.com'],
    ]);
    expect((await get<AccountPlan>('/v1/billing/plan')).plan.id).toBe('free');
  });

  it('is the account’s own', async () => {
    await join({ planId: 'pro', email: 'a@example.com' });
    me = await createTenant(api, 'free');
    expect(await get('/v1/billing/whitelist')).toEqual({ data: [] });
  });

  it.each([
    [{ planId: 'free', email: 'a@example.com' }, 'planId'],
    [{ planId: 'gold', email: 'a@example.com' }, 'planId'],
    [{ email: 'a@example.com' }, 'planId'],
    [{ planId: 'pro' }, 'email'],
    [{ planId: 'pro', email: 'no address' }, 'email'],
    [{ planId: 'pro', email: 'a@example.com', plan: 1 }, 'plan'],
  ])('refuses %j', async (body, path) => {
    const { status, problem } = await join(body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  });

  it('takes JSON only', async () => {
    const { status, problem } = await api.ask('POST /v1/billing/whitelist', {
      ...{ cookie: me.cookie, body: '{}', headers: { 'content-type': 'text/plain' } },
    });
    expect([status, problem.code]).toEqual([415, 'unsupported_media_type']);
  });
});

describe('POST /v1/billing/checkout', () => {
  it('is paused, and for sessions only', async () => {
    const paused = await api.ask('POST /v1/billing/checkout', { cookie: me.cookie });
    expect([paused.status, paused.problem.code]).toEqual([503, 'billing_paused']);
    expect((await api.ask('POST /v1/billing/checkout', { bearer: me.full })).status).toBe(401);
  });
});

describe('a payment provider’s callback', () => {
  const call = (provider: string, body: string, signature?: string): Promise<Answer> =>
    api.ask(`POST /v1/billing/callbacks/${provider}`, {
      body,
      headers: signature === undefined ? {} : { 'x-signature': signature },
    });
  const sign = (body: string, key = secret): string => createHmac('sha256', key).update(body).digest('hex');
  const kept = async (): Promise<unknown[]> =>
    (await api.store.query('select event_id from billing_events order by event_id')).rows;

  it('is put on record once, however often it comes', async () => {
    const body = '{ "id": "evt-1", "amount": 9900 }';
    expect((await call('paytabs', body, sign(body))).status).toBe(200);
    expect((await call('paytabs', body, sign(body))).status).toBe(200);
    expect(await kept()).toEqual([{ event_id: 'evt-1' }]);
  });

  it.each<[string, string | undefined]>([
    ['no signature', undefined],
    ['a wrong one', '00'.repeat(32)],
    ['one of other bytes', sign('{"id":"evt-2"} ')],
    ['one of another secret', sign('{"id":"evt-2"}', 'x'.repeat(40))],
    ['no hex', 'zz'],
  ])('with %s is 401 and leaves nothing behind', async (_what, signature) => {
    const { status, problem } = await call('paytabs', '{"id":"evt-2"}', signature);
    expect([status, problem.code]).toEqual([401, 'unauthorized']);
    expect(await kept()).not.toContainEqual({ event_id: 'evt-2' });
  });

  it.each(['', '{', '[]', '{}', '{"id":""}', '{"id":5}'])('whose body is %j is 400', async (body) => {
    const { status, problem } = await call('paytabs', body, sign(body));
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
  });

  it('of more than 64 KiB is 400', async () => {
    const body = JSON.stringify({ id: 'evt-3', x: 'x'.repeat(65_536) });
    expect((await call('paytabs', body, sign(body))).status).toBe(400);
  });

  it('of a provider that is not configured is 503', async () => {
    const { status, problem } = await call('moyasar', '{"id":"1"}', sign('{"id":"1"}'));
    expect([status, problem.code]).toEqual([503, 'billing_unavailable']);
  });
});
