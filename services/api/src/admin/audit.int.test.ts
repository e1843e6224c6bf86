import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type RouteDefinition, routes } from '@millrace/contract';
import { recordOf, toldLater } from '../testing/record.ts';
import { seedVideo } from '../testing/seed-video.ts';
import {
  adminToken,
  type Answer,
  createTenant,
  createTestApi,
  type Tenant,
  type TestApi,
} from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi({ config: { SMS_PROVIDER: 'log' } });
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

interface Act {
  /** Below `/admin/`. */
  path: string;
  body?: object;
}
const ready = (): Promise<string> => seedVideo(api.store, me);
const banned = { phone: '+966501234567' };

/** One request of every route by which the team changes something, and what it needs before. */
const acts: Record<string, () => Promise<Act> | Act> = {
  holdVideo: async () => ({ path: `videos/${await ready()}/hold`, body: { reason: 'Review' } }),
  liftVideo: async () => ({ path: `videos/${await ready()}/hold` }),
  removeVideo: async () => ({ path: `videos/${await ready()}` }),
  retryEncodeJob: async () => {
    const failed = await seedVideo(api.store, me, { status: 'failed', failureCode: 'encoding_failed' });
    const { rows } = await api.store.query<{ id: string }>(
      'select current_job_id as id from videos where id = $1',
      [failed],
    );
    return { path: `encode-jobs/${rows[0]?.id ?? ''}/retry` };
  },
  banAccount: () => ({ path: `accounts/${me.accountId}/ban`, body: { holdVideos: true } }),
  unbanAccount: async () => {
    await api.operator.banAccount({ accountId: me.accountId, banned: true });
    return { path: `accounts/${me.accountId}/ban` };
  },
  setAccountPlan: () => ({ path: `accounts/${me.accountId}/plan`, body: { planId: 'free' } }),
  eraseAccount: async () => {
    const { rows } = await api.store.query<{ name: string }>('select name from accounts where id = $1', [
      me.accountId,
    ]);
    return { path: `accounts/${me.accountId}/erase`, body: { name: rows[0]?.name } };
  },
  pauseEncoding: () => ({ path: 'encoding/pause', body: { accountId: me.accountId } }),
  resumeEncoding: async () => {
    await admin('POST', { path: 'encoding/pause', body: { accountId: me.accountId } });
    return { path: `encoding/pause?accountId=${me.accountId}` };
  },
  banPhone: () => ({ path: 'bans/phone', body: banned }),
  unbanPhone: async () => {
    await admin('POST', { path: 'bans/phone', body: banned });
    return { path: 'bans/phone', body: banned };
  },
  banDevice: () => ({ path: 'bans/device', body: { deviceId: me.accountId } }),
  unbanDevice: async () => {
    await admin('POST', { path: 'bans/device', body: { deviceId: me.accountId } });
    return { path: 'bans/device', body: { deviceId: me.accountId } };
  },
};
const changing = Object.entries(routes as Record<string, RouteDefinition>).filter(
  ([, { auth, method }]) => auth.includes('admin') && method !== 'get',
);

const admin = (method: string, { path, body }: Act): Promise<Answer> =>
  api.ask(`${method.toUpperCase()} internal:/admin/${path}`, {
    bearer: adminToken,
    ...(body === undefined ? {} : { body }),
  });
const entries = async (): Promise<number> =>
  (await api.store.query('select from audit where actor = $1', ['admin'])).rowCount;

describe('the audit log', () => {
  it.each(changing)('has a row of %s [ADM-005]', async (id, { method }) => {
    const act = await acts[id]?.();
    if (act === undefined) throw new Error(`${id} has no example here`);
    const before = await entries();
    expect((await admin(method, act)).status).toBeLessThan(300);
    expect(await entries()).toBe(before + 1);
  });

  it.each(changing)('not written undoes %s [ADM-005]', async (id, { method }) => {
    const act = await acts[id]?.();
    if (act === undefined) throw new Error(`${id} has no example here`);
    const before = await recordOf(api.store, toldLater);
    await api.store.query(`alter table audit add constraint full_disk check (false) not valid`);
    try {
      expect((await admin(method, act)).status).toBe(500);
    } finally {
      await api.store.query('alter table audit drop constraint full_disk');
    }
    expect(await recordOf(api.store, toldLater)).toEqual(before);
  });

  it('only grows: the record refuses to change or delete its rows [ADM-005]', async () => {
    await admin('POST', { path: `accounts/${me.accountId}/plan`, body: { planId: 'pro' } });
    for (const change of ['delete from audit', `update audit set actor = 'nobody'`]) {
      await expect(api.store.query(change)).rejects.toThrow();
    }
    expect(await entries()).toBeGreaterThan(0);
  });

  it('is listed newest first, in pages, whole or of one subject [ADM-209]', async () => {
    const accountId = me.accountId;
    await admin('POST', { path: `accounts/${accountId}/plan`, body: { planId: 'pro' } });
    await admin('POST', { path: `accounts/${accountId}/ban`, body: { reason: 'Fraud' } });
    await admin('POST', { path: 'bans/device', body: { deviceId: 'dev_listed' } });
    interface Row {
      actor: string;
      action: string;
      subject: string;
      details: object;
    }
    const list = async (query: string): Promise<{ data: Row[]; nextCursor: string | null }> =>
      (
        await api.ask<{ data: Row[]; nextCursor: string | null }>(`GET internal:/admin/audit${query}`, {
          bearer: adminToken,
        })
      ).body;
    const lineOf = ({ action, subject }: Row): string => `${action} ${subject}`;
    const first = await list('?limit=2');
    const rest = await list(`?limit=1&cursor=${first.nextCursor ?? ''}`);
    expect(first.data.map(lineOf)).toEqual(['device.ban dev_listed', `account.ban ${accountId}`]);
    expect(rest.data.map(lineOf)).toEqual([`account.plan ${accountId}`]);
    const ofAccount = await list(`?subject=${accountId}`);
    expect(ofAccount.data[0]).toMatchObject({ actor: 'admin', details: { reason: 'Fraud' } });
    expect(ofAccount.data.every(({ subject }) => subject === accountId)).toBe(true);
    expect(ofAccount.nextCursor).toBeNull();
  });
});
