import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type User } from '@millrace/contract';
import { createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

describe('GET /v1/me', () => {
  it('says who is signed in', async () => {
    const { status, body } = await api.ask<{ user: User; account: Account }>('GET /v1/me', {
      cookie: me.cookie,
    });
    expect([status, body.user.id, body.user.role, body.account.id]).toEqual([
      200,
      me.userId,
      'owner',
      me.accountId,
    ]);
    expect(body.account).toMatchObject({
      ...{ planId: 'agency', planStatus: 'active', phoneVerified: false, phoneVerificationRequired: false },
    });
  });

  it('answers every field of the user and the account [USR-001, ACC-001, ACC-005]', async () => {
    const { body } = await api.ask('GET /v1/me', { cookie: me.cookie });
    const text = expect.any(String) as unknown;
    expect(body).toEqual({
      user: {
        ...{ id: me.userId, role: 'owner' },
        ...{ email: expect.stringMatching(/^t\d+@example\.com$/) as unknown, displayName: text },
      },
      account: {
        ...{ id: me.accountId, name: text, planId: 'agency', planStatus: 'active' },
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as unknown,
        ...{ phoneVerified: false, phoneVerificationRequired: false },
      },
    });
  });

  it.each(['owner', 'member'])('knows %s as a role [USR-002]', async (role) => {
    await api.store.query('update users set role = $2 where id = $1', [me.userId, role]);
    const { body } = await api.ask<{ user: User }>('GET /v1/me', { cookie: me.cookie });
    expect(body.user.role).toBe(role);
  });

  it('knows no other role', async () => {
    const other = api.store.query(`update users set role = 'admin' where id = $1`, [me.userId]);
    await expect(other).rejects.toThrow('users_role_check');
  });

  it('shows the plan of the account and its status [ACC-002, ACC-003]', async () => {
    const { rows } = await api.store.query<{ id: string }>('select id from plans');
    expect(rows.map(({ id }) => id).toSorted()).toEqual(['agency', 'free', 'pro', 'starter']);
    const { accountId } = me;
    for (const planId of ['free', 'starter', 'pro', 'agency']) {
      for (const planStatus of ['active', 'pilot', 'past_due', 'canceled'] as const) {
        await api.operator.setPlan({ accountId, planId, planStatus });
        const { body } = await api.ask<{ account: Account }>('GET /v1/me', { cookie: me.cookie });
        expect(body.account).toMatchObject({ planId, planStatus });
      }
    }
    const { setPlan } = api.operator;
    await expect(setPlan({ accountId, planId: 'gold' })).rejects.toMatchObject({ code: 'invalid_request' });
    const ended = setPlan({ accountId, planId: 'pro', planStatus: 'ended' as never });
    await expect(ended).rejects.toThrow('accounts_plan_status_check');
  });

  it.each(['/v1/me', '/v1/billing/plan', '/v1/billing/plans', '/v1/billing/whitelist'])(
    'and every account route: %s takes a session only',
    async (path) => {
      for (const ask of [{}, { bearer: me.full }, { cookie: 'forged' }]) {
        const { status, problem } = await api.ask(`GET ${path}`, ask);
        expect([status, problem.code]).toEqual([401, 'unauthorized']);
      }
      const playback = await api.ask(`GET ${path}`, { bearer: me.playback });
      expect([playback.status, playback.problem.code]).toEqual([403, 'insufficient_scope']);
    },
  );
});
