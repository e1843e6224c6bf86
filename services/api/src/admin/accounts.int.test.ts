import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type Video } from '@millrace/contract';
import {
  claimTask,
  eraseAccount,
  reconcileBanHolds,
  reconcileWatchLimits,
  repairJobs,
  republishQueued,
} from '@millrace/store';
import { recordOf, toldLater } from '../testing/record.ts';
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

interface Page<Row> {
  data: Row[];
  nextCursor: string | null;
}

let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const admin = <Body = Account>(request: string, body?: unknown): Promise<Answer<Body>> => {
  const [method = '', path = ''] = request.split(' ');
  return api.ask<Body>(`${method} internal:/admin/${path}`, {
    ...{ bearer: adminToken },
    ...(body === undefined ? {} : { body }),
  });
};
const get = (): Promise<Answer> => api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full });
const refusal = ({ status, problem }: Answer): [number, string] => [status, problem.code];
const statusOf = async (videoId: string): Promise<string | undefined> =>
  (await api.store.query<{ status: string }>('select status from videos where id = $1', [videoId])).rows[0]
    ?.status;
const audit = async (subject: string): Promise<string[]> =>
  (await admin<Page<{ actor: string; action: string }>>(`GET audit?subject=${subject}`)).body.data.map(
    ({ actor, action }) => `${actor} ${action}`,
  );

describe('banning an account', () => {
  it('refuses every call of it from the next on, with key and session, until it is lifted [ADM-204]', async () => {
    const { status, body } = await admin(`POST accounts/${me.accountId}/ban`, { reason: 'abuse' });
    expect([status, body.id]).toEqual([200, me.accountId]);
    expect(refusal(await get())).toEqual([403, 'account_banned']);
    expect(refusal(await api.ask('GET /v1/me', { cookie: me.cookie }))).toEqual([403, 'account_banned']);
    expect((await admin(`DELETE accounts/${me.accountId}/ban`)).status).toBe(200);
    expect((await get()).status).toBe(200);
    expect(await audit(me.accountId)).toEqual(
      expect.arrayContaining(['admin account.ban', 'admin account.unban']),
    );
  });

  it('leaves what plays alone; with holdVideos it is held until the ban is lifted [BAN-004, BAN-005]', async () => {
    const plays = await seedVideo(api.store, me, { status: 'ready' });
    // All that the CDN decides by.
    const state = async (): Promise<unknown> =>
      (
        await api.ask(`GET internal:/internal/playback-state/${plays}`, {
          headers: { 'x-internal-secret': internalSecret },
        })
      ).body;
    const before = await state();
    const ban = async (body: object): Promise<void> => {
      await admin(`POST accounts/${me.accountId}/ban`, body);
      await reconcileBanHolds(api.store);
    };
    await ban({});
    expect(await statusOf(plays)).toBe('ready');
    expect(await state()).toEqual(before);
    await ban({ holdVideos: true, reason: 'abuse' });
    expect(await statusOf(plays)).toBe('held');
    expect(await reconcileBanHolds(api.store)).toBe(0);
    // The team's own hold outlives the ban.
    const held = await seedVideo(api.store, me, { status: 'ready' });
    await admin(`POST videos/${held}/hold`, {});
    await reconcileBanHolds(api.store);
    await admin(`DELETE accounts/${me.accountId}/ban`);
    await reconcileBanHolds(api.store);
    expect([await statusOf(plays), await statusOf(held)]).toEqual(['ready', 'held']);
  });

  it('holds all of its videos in one run, and none once it was lifted in the midst of it', async () => {
    const videos: string[] = [];
    for (let i = 0; i < 5; i += 1) videos.push(await seedVideo(api.store, me, { status: 'ready' }));
    await admin(`POST accounts/${me.accountId}/ban`, { holdVideos: true });
    const late: typeof api.store = {
      ...api.store,
      transaction: async (work) => {
        await admin(`DELETE accounts/${me.accountId}/ban`);
        return api.store.transaction(work);
      },
    };
    expect(await reconcileBanHolds(late, { limit: 2 })).toBe(0);
    await admin(`POST accounts/${me.accountId}/ban`, { holdVideos: true });
    expect(await reconcileBanHolds(api.store, { limit: 2 })).toBe(5);
    await admin(`DELETE accounts/${me.accountId}/ban`);
    expect(await reconcileBanHolds(api.store, { limit: 2 })).toBe(5);
    expect(new Set(await Promise.all(videos.map(statusOf)))).toEqual(new Set(['ready']));
  });

  it.each([true, false])(
    'of an erased account changes nothing, and lets go of nothing (%p)',
    async (flag) => {
      const { accountId } = me;
      const held = await seedVideo(api.store, me, { status: 'ready' });
      await admin(`POST accounts/${accountId}/ban`, { holdVideos: true });
      await reconcileBanHolds(api.store);
      const [account] = (
        await api.store.query<{ name: string }>('select name from accounts where id = $1', [accountId])
      ).rows;
      await api.store.transaction((tx) =>
        eraseAccount(tx, { accountId, name: account?.name ?? '', reason: null, actor: 'test' }),
      );
      await api.store.query('update accounts set ban_holds_videos = $2 where id = $1', [accountId, flag]);
      // Not worth a hold: it is about to be deleted.
      await seedVideo(api.store, me, { status: 'ready' });
      const before = await recordOf(api.store, toldLater);
      for (const body of [{}, { holdVideos: true, reason: 'abuse' }]) {
        expect((await admin(`POST accounts/${accountId}/ban`, body)).status).toBe(200);
        expect(await reconcileBanHolds(api.store)).toBe(0);
      }
      expect(await recordOf(api.store, toldLater)).toEqual(before);
      expect(await statusOf(held)).toBe('held');
    },
  );

  it.each(['POST', 'DELETE'])('of an unknown account: %s is 404', async (method) => {
    expect(
      refusal(await admin(`${method} accounts/acc_unknown/ban`, method === 'POST' ? {} : undefined)),
    ).toEqual([404, 'not_found']);
  });
});

describe('putting an account on a plan', () => {
  it('holds from the next request on, and the CDN is told [ADM-205]', async () => {
    const { status, body } = await admin(`POST accounts/${me.accountId}/plan`, {
      planId: 'free',
      status: 'past_due',
    });
    expect([status, body.planId, body.planStatus]).toEqual([200, 'free', 'past_due']);
    const { rows } = await api.store.query<{ quality: string }>(
      `select value -> 'state' ->> 'maxQuality' as quality from outbox where key = $1 order by id desc limit 1`,
      [me.accountId],
    );
    expect(rows).toEqual([{ quality: '720p' }]);
    expect(await audit(me.accountId)).toContain('admin account.plan');
  });

  it('that allows more encodes no video again, now or later [LIM-111]', async () => {
    const free = await createTenant(api, 'free');
    const videoId = await seedVideo(api.store, free, { status: 'ready', qualities: ['360p', '720p'] });
    // Not the outbox: the CDN is told of the plan.
    const encodes = async (): Promise<unknown> => {
      const { videos, encode_jobs, encode_tasks } = await recordOf(api.store);
      return { videos, encode_jobs, encode_tasks };
    };
    const before = await encodes();
    expect((await admin(`POST accounts/${free.accountId}/plan`, { planId: 'agency' })).body.planId).toBe(
      'agency',
    );
    await reconcileWatchLimits(api.store);
    await repairJobs(api.store);
    await republishQueued(api.store, { olderThanMs: 0, limit: 500 });
    expect(await encodes()).toEqual(before);
    const { body } = await api.ask<Video>(`GET /v1/projects/${free.projectId}/videos/${videoId}`, {
      bearer: free.full,
    });
    expect([body.status, body.qualities]).toEqual(['ready', ['360p', '720p']]);
  });

  it.each([{ planId: 'gold' }, {}, { planId: 'pro', status: 'rich' }, { planId: 'pro', x: 1 }])(
    'refuses %j',
    async (body) => {
      expect(refusal(await admin(`POST accounts/${me.accountId}/plan`, body))).toEqual([
        400,
        'invalid_request',
      ]);
    },
  );
});

describe('what the team reads', () => {
  it('pages reports, newest first [ADM-207]', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'ready' });
    const file = async (reason: string): Promise<void> => {
      await api.ask(`POST /v1/projects/${me.projectId}/videos/${videoId}/reports`, {
        bearer: me.full,
        body: { reason },
      });
    };
    for (const reason of ['one', 'two', 'three']) await file(reason);
    const first = (await admin<Page<{ reason: string }>>('GET reports?limit=2')).body;
    const second = (
      await admin<Page<{ reason: string }>>(`GET reports?limit=2&cursor=${first.nextCursor ?? ''}`)
    ).body;
    expect([first, second].map(({ data }) => data.map(({ reason }) => reason))).toEqual([
      ['three', 'two'],
      ['one'],
    ]);
    expect(second.nextCursor).toBeNull();
  });

  it('pages encode jobs by their state [ADM-208]', async () => {
    await api.store.query(
      `insert into encode_jobs (id, video_id, account_id, state, created_at)
       select 'job_' || n, $1, $2, case when n = 3 then 'failed' else 'running' end, now() + n * interval '1 second'
       from generate_series(1, 4) n`,
      [await seedVideo(api.store, me, { status: 'processing' }), me.accountId],
    );
    type Jobs = Page<{ id: string; state: string }>;
    const ids = async (query: string): Promise<string[]> =>
      (await admin<Jobs>(`GET encode-jobs${query}`)).body.data
        .map(({ id }) => id)
        .filter((id) => id.length < 8);
    expect(await ids('?state=failed')).toEqual(['job_3']);
    expect(await ids('?state=running&limit=2')).toEqual(['job_4', 'job_2']);
    expect(refusal(await admin('GET encode-jobs?state=lost'))).toEqual([400, 'invalid_request']);
  });

  it('refuses the cursor of another list', async () => {
    await admin(`POST accounts/${me.accountId}/plan`, { planId: 'pro' });
    await admin(`POST accounts/${me.accountId}/plan`, { planId: 'free' });
    const { nextCursor } = (await admin<Page<unknown>>(`GET audit?limit=1&subject=${me.accountId}`)).body;
    expect(refusal(await admin(`GET audit?cursor=${nextCursor ?? ''}`))).toEqual([400, 'invalid_request']);
    expect(refusal(await admin(`GET reports?cursor=${nextCursor ?? ''}`))).toEqual([400, 'invalid_request']);
  });
});

describe('pausing encodes', () => {
  const claim = async (): Promise<string | undefined> => {
    const task = await claimTask(api.store, { worker: 'w', class: 'standard', leaseMs: 60_000 });
    if (task !== null) await api.store.query(`delete from encode_tasks where id = $1`, [task.id]);
    return task?.accountId;
  };
  const queue = async (): Promise<void> => {
    await api.store.query('delete from encode_tasks');
    await seedVideo(api.store, me, { status: 'processing' });
  };

  it.each<[string, () => object, () => string]>([
    ['at all', () => ({}), () => ''],
    ['of a class', () => ({ class: 'standard' }), () => '?class=standard'],
    ['of an account', () => ({ accountId: me.accountId }), () => `?accountId=${me.accountId}`],
  ])('%s holds queued tasks back until it is lifted [ADM-210]', async (_what, body, query) => {
    await queue();
    const paused = await admin<{ data: { reason: string; pausedBy: string }[] }>('POST encoding/pause', {
      ...body(),
      reason: 'disk',
    });
    expect([paused.status, paused.body.data]).toEqual([
      ...[200, [expect.objectContaining({ reason: 'disk', pausedBy: 'admin' })]],
    ]);
    expect(await claim()).toBeUndefined();
    expect((await admin<{ data: unknown[] }>('GET encoding/pause')).body.data).toHaveLength(1);
    const { body: left } = await admin<{ data: unknown[] }>(`DELETE encoding/pause${query()}`);
    expect(left.data).toEqual([]);
    expect(await claim()).toBe(me.accountId);
  });

  it('of another account or class holds nothing else back', async () => {
    await queue();
    await admin('POST encoding/pause', { class: 'large' });
    const { accountId } = await createTenant(api);
    await admin('POST encoding/pause', { accountId });
    expect(await claim()).toBe(me.accountId);
    await admin('DELETE encoding/pause?class=large');
    await admin(`DELETE encoding/pause?accountId=${accountId}`);
    expect((await audit(accountId)).slice(0, 2)).toEqual(['admin encoding.resume', 'admin encoding.pause']);
  });

  it.each([{ class: 'huge' }, { accountId: 'acc_1', class: 'large' }, { reason: '' }])(
    'refuses %j',
    async (body) => {
      expect(refusal(await admin('POST encoding/pause', body))).toEqual([400, 'invalid_request']);
    },
  );

  it('knows no account that is not there', async () => {
    expect(refusal(await admin('POST encoding/pause', { accountId: 'acc_1' }))).toEqual([404, 'not_found']);
  });
});
