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
