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

const useStored = (ms: number): Promise<unknown> =>
  api.store.query('update usage set stored_ms = stored_ms + $2 where account_id = $1', [me.accountId, ms]);

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

  it('has these fields and no others, for all projects together [PLN-201, PLN-005, PLN-006]', async () => {
    me = await createTenant(api, 'pro');
    const { id: second } = await api.operator.createProject({ accountId: me.accountId, name: 'Second' });
    for (const [n, projectId] of [me.projectId, second].entries()) {
      const hostname = `p${n}.${me.projectId.slice(4).toLowerCase()}.example.com`;
      await api.operator.addDomain({ projectId, hostname, verified: true });
      const pending = { projectId, hostname: `pending.${hostname}` };
      await api.operator.addDomain(pending);
      await useStored(90_500);
    }
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00\.000Z$/) as unknown;
    expect(await get('/v1/billing/plan')).toEqual({
      plan: { id: 'pro', name: 'Pro' },
      status: 'active',
      currentPeriod: { start: time, end: time },
      limits: {
        ...{ storedSeconds: 1_800_000, uploadSecondsPerPeriod: 900_000, watchedMinutesPerPeriod: 500_000 },
        ...{ verifiedDomains: 10, projects: 10, maxQuality: '2160p', whiteLabel: true },
      },
      usage: { storedSeconds: 181, watchedMinutes: 0, verifiedDomains: 2, overageMinutes: 0 },
    });
  });

  it('counts what was watched in the current period only [PLN-006]', async () => {
    me = await createTenant(api, 'starter');
    await useStored(60_000);
    const watch = (began: string): Promise<unknown> =>
      api.store.query(
        `update usage set watched_ms = 50_002::bigint * 60_000,
           period_start = date_trunc('day', now()) + $2::interval,
           period_end = date_trunc('day', now()) + $2::interval + interval '30 days' where account_id = $1`,
        [me.accountId, began],
      );
    await watch('-3 days');
    const usage = { storedSeconds: 60, verifiedDomains: 0 };
    expect(await get('/v1/billing/plan')).toMatchObject({
      usage: { ...usage, watchedMinutes: 50_002, overageMinutes: 2 },
    });
    await watch('-33 days');
    expect(await get('/v1/billing/plan')).toMatchObject({
      usage: { ...usage, watchedMinutes: 0, overageMinutes: 0 },
    });
  });

  it.each(['active', 'pilot', 'past_due'])(
    'shows its plan’s limits to an account that is %s [ACC-102]',
    async (planStatus) => {
      me = await createTenant(api, 'pro');
      await api.store.query('update accounts set plan_status = $2 where id = $1', [me.accountId, planStatus]);
      const { plan, status, limits } = await get<AccountPlan>('/v1/billing/plan');
      expect([plan.id, status, limits.maxQuality, limits.projects]).toEqual(['pro', planStatus, '2160p', 10]);
      const name = `${planStatus} too`;
      const created = await api.ask('POST /v1/projects', { cookie: me.cookie, body: { name } });
      expect(created.status).toBe(201);
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
  it('lists the paid plans with their prices in halalas [PLN-202, PLN-003, CNV-008]', async () => {
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

describe('a plan of the list', () => {
  it('has these fields and no others [PLN-002, PLN-004]', async () => {
    const { data } = await get<{ data: PlanResource[] }>('/v1/billing/plans');
    expect(data[0]).toEqual({
      ...{ id: 'starter', name: 'Starter' },
      price: { amount: 9_900, currency: 'SAR', interval: 'month' },
      limits: {
        ...{ storedSeconds: 360_000, uploadSecondsPerPeriod: 180_000, watchedMinutesPerPeriod: 50_000 },
        ...{ verifiedDomains: 3, projects: 3, maxQuality: '1080p', whiteLabel: false },
      },
    });
  });
});

describe('the whitelist', () => {
  const join = (body: unknown): Promise<Answer<{ data: WhitelistEntry }>> =>
    api.ask<{ data: WhitelistEntry }>('POST /v1/billing/whitelist', { cookie: me.cookie, body });

  it('takes an account’s wish; a repeat refreshes the address and keeps the time [PLN-204, PLN-206]', async () => {
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

  it('answers the entry [PLN-001, PLN-203, PLN-205]', async () => {
    for (const planId of ['starter', 'pro', 'agency']) {
      const before = api.now().getTime() - 1;
      const { status, body } = await join({ planId, email: 'a@example.com' });
      const { createdAt } = body.data;
      expect([status, body]).toEqual([200, { data: { planId, email: 'a@example.com', createdAt } }]);
      expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(before);
      expect(await get('/v1/billing/whitelist')).toMatchObject({
        data: expect.arrayContaining([body.data]) as unknown,
      });
    }
  });

  it('is the account’s own [PLN-207]', async () => {
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
  ])('refuses %j [PLN-203]', async (body, path) => {
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
  it('is paused, charges nothing and sells nothing [SVC-007, PLN-208, PLN-204]', async () => {
    const paused = await api.ask('POST /v1/billing/checkout', { cookie: me.cookie });
    expect([paused.status, paused.problem.code]).toEqual([503, 'billing_paused']);
    expect((await get<AccountPlan>('/v1/billing/plan')).plan.id).toBe('free');
    expect((await api.store.query('select from billing_events')).rowCount).toBe(0);
    const body = { planId: 'pro', email: 'a@example.com' };
    expect((await api.ask('POST /v1/billing/whitelist', { cookie: me.cookie, body })).status).toBe(200);
    expect((await get<AccountPlan>('/v1/billing/plan')).plan.id).toBe('free');
  });

  it('is for sessions only', async () => {
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

  it('is put on record once, however often it comes [PLN-212]', async () => {
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
  ])('with %s is 401 and leaves nothing behind [PLN-211]', async (_what, signature) => {
    const { status, problem } = await call('paytabs', '{"id":"evt-2"}', signature);
    expect([status, problem.code]).toEqual([401, 'unauthorized']);
    expect(await kept()).not.toContainEqual({ event_id: 'evt-2' });
  });

  it.each(['', '{', '[]', '{}', '{"id":""}', '{"id":5}', '{"id":"\\u0000"}', '{"id":"1","payment":{}}'])(
    'whose body is %j is 400',
    async (body) => {
      const { status, problem } = await call('paytabs', body, sign(body));
      expect([status, problem.code]).toEqual([400, 'invalid_request']);
    },
  );

  const reported = async (payment: object): Promise<Answer> => {
    const fair = { accountId: me.accountId, planId: 'pro', amount: 29_900, currency: 'SAR' };
    const body = JSON.stringify({ id: `evt-${me.accountId}`, payment: { ...fair, ...payment } });
    return call('paytabs', body, sign(body));
  };

  it.each<[string, object]>([
    ['amount', { amount: 29_899 }],
    ['amount', { amount: 299 }],
    ['currency', { currency: 'USD' }],
    ['plan', { planId: 'agency' }],
    ['plan', { planId: 'free', amount: 0 }],
    ['account', { accountId: 'acc_0000000000000000000000' }],
  ])('of a payment of another %s is 400 and leaves nothing behind: %j [PLN-213]', async (_what, payment) => {
    const { status, problem } = await reported(payment);
    expect([status, problem.code]).toEqual([400, 'billing_mismatch']);
    expect(await kept()).not.toContainEqual({ event_id: `evt-${me.accountId}` });
  });

  it('of a payment as ordered is put on record, and changes no plan', async () => {
    expect((await reported({})).status).toBe(200);
    expect(await kept()).toContainEqual({ event_id: `evt-${me.accountId}` });
    expect((await get<AccountPlan>('/v1/billing/plan')).plan.id).toBe('free');
  });

  it('of more than 64 KiB is 400', async () => {
    const body = JSON.stringify({ id: 'evt-3', x: 'x'.repeat(65_536) });
    expect((await call('paytabs', body, sign(body))).status).toBe(400);
  });

  it('of a provider that is not configured is 503 [PLN-210]', async () => {
    const { status, problem } = await call('moyasar', '{"id":"1"}', sign('{"id":"1"}'));
    expect([status, problem.code]).toEqual([503, 'billing_unavailable']);
  });
});
