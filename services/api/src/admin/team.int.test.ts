import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PlaybackStateResponse, type Video } from '@millrace/contract';
import { createHoldCommands } from '@millrace/store';
import { failEncode, finishEncode, seedVideo } from '../testing/seed-video.ts';
import {
  adminToken,
  type Answer,
  createTenant,
  createTestApi,
  internalSecret,
  type Tenant,
  type TestApi,
} from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;

beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const admin = <Body = Video>(request: string, body?: unknown): Promise<Answer<Body>> => {
  const [method = '', path = ''] = request.split(' ');
  return api.ask<Body>(`${method} internal:/admin/${path}`, {
    bearer: adminToken,
    ...(body === undefined ? {} : { body }),
  });
};
const hold = (videoId: string, body: object = {}) => admin(`POST videos/${videoId}/hold`, body);
const lift = (videoId: string) => admin(`DELETE videos/${videoId}/hold`);
const video = async (videoId: string): Promise<Video> =>
  (await api.ask<Video>(`GET /v1/projects/${me.projectId}/videos/${videoId}`, { bearer: me.full })).body;

async function events(videoId: string): Promise<string[]> {
  const { rows } = await api.store.query<{ type: string; body: Buffer }>(
    'select type, body from events where video_id = $1 order by created_at, id',
    [videoId],
  );
  return rows.map(({ type, body }) => {
    const { data } = JSON.parse(body.toString('utf8')) as { data: { reason?: string } };
    return data.reason === undefined ? type : `${type}: ${data.reason}`;
  });
}
async function audit(subject: string): Promise<string[]> {
  const { rows } = await api.store.query<{ actor: string; action: string }>(
    'select actor, action from audit where subject = $1 order by at, id',
    [subject],
  );
  return rows.map(({ actor, action }) => `${actor} ${action}`);
}
async function doomed(videoId: string): Promise<boolean[]> {
  const { rows } = await api.store.query<{ doomed: boolean }>(
    'select delete_after is not null as doomed from object_prefixes where video_id = $1',
    [videoId],
  );
  return rows.map((row) => row.doomed);
}
/** What CDN processes were told of a video, oldest first. */
async function told(videoId: string): Promise<string[]> {
  const { rows } = await api.store.query<{ version: number; status: string }>(
    `select version, value -> 'state' ->> 'status' as status from outbox
     where key = $1 and topic = 'millrace.playback.state' order by id`,
    [videoId],
  );
  const versions = rows.map((row) => row.version);
  expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b));
  return rows.map((row) => row.status);
}

describe('holding a video', () => {
  it('stops it, tells the customer why, and lifting starts it again with the same readyAt [VID-107, VID-108, HLD-007]', async () => {
    const videoId = await seedVideo(api.store, me);
    const before = await video(videoId);
    const held = await hold(videoId, { reason: 'Under review' });
    expect(held.body).toMatchObject({ id: videoId, status: 'held', readyAt: before.readyAt });
    expect(await events(videoId)).toEqual(['video.ready', 'video.held: Under review']);
    const lifted = await lift(videoId);
    expect(lifted.body).toMatchObject({ status: 'ready', readyAt: before.readyAt });
    expect(await events(videoId)).toEqual(['video.ready', 'video.held: Under review', 'video.ready']);
    expect(await told(videoId)).toEqual(['processing', 'ready', 'held', 'ready']);
    expect(await audit(videoId)).toEqual(['admin video.hold', 'admin video.lift']);
    const instants = [before.updatedAt, held.body.updatedAt, lifted.body.updatedAt];
    expect(instants).toEqual([...new Set(instants)].toSorted());
  });

  it('a second time changes the reason and tells nobody [HLD-006, ADM-201]', async () => {
    const videoId = await seedVideo(api.store, me);
    await hold(videoId, { reason: 'First' });
    const { updatedAt } = await video(videoId);
    const { status, body } = await hold(videoId, { reason: 'Second' });
    expect([status, body]).toEqual([200, await video(videoId)]);
    expect(await events(videoId)).toEqual(['video.ready', 'video.held: First']);
    expect((await video(videoId)).updatedAt).toBe(updatedAt);
    const { rows } = await api.store.query('select reason from video_holds where video_id = $1', [videoId]);
    expect(rows).toEqual([{ reason: 'Second' }]);
  });

  it.each(['uploading', 'processing'] as const)(
    'in %s is kept: encoding ends in held [HLD-003, HLD-004, VID-015]',
    async (status) => {
      const videoId = await seedVideo(api.store, me, { status: 'processing' });
      if (status === 'uploading') {
        await api.store.query(`update videos set status = 'uploading' where id = $1`, [videoId]);
      }
      expect((await hold(videoId, { reason: 'Early' })).body.status).toBe(status);
      expect(await events(videoId)).toEqual([]);
      await api.store.query(`update videos set status = 'processing' where id = $1`, [videoId]);
      await finishEncode(api.store, videoId);
      const held = await video(videoId);
      expect(held.status).toBe('held');
      expect(held.readyAt).not.toBeNull();
      expect(await events(videoId)).toEqual(['video.held: Early']);
      await lift(videoId);
      expect(await video(videoId)).toMatchObject({ status: 'ready', readyAt: held.readyAt });
      expect(await events(videoId)).toEqual(['video.held: Early', 'video.ready']);
    },
  );

  it('is not possible for a failed one, and leaves no hold behind [HLD-005]', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'failed' });
    expect(outcome(await hold(videoId))).toBe('409 invalid_video_state');
    const { rowCount } = await api.store.query('select from video_holds where video_id = $1', [videoId]);
    expect([rowCount, await audit(videoId)]).toEqual([0, []]);
  });

  it('is silent for a legal matter, but not when it is over [HLD-008, HLD-010, EVT-003]', async () => {
    const videoId = await seedVideo(api.store, me);
    expect((await hold(videoId, { reason: 'Court order', legal: true })).body.status).toBe('held');
    expect(await events(videoId)).toEqual(['video.ready']);
    expect(await told(videoId)).toEqual(['processing', 'ready', 'held']);
    await lift(videoId);
    expect(await events(videoId)).toEqual(['video.ready', 'video.ready']);
  });

  it.each(['free', 'starter', 'pro', 'agency'])(
    'by the team or a check is for every plan: %s [SVC-010]',
    async (planId) => {
      me = await createTenant(api, planId);
      const held = await hold(await seedVideo(api.store, me));
      expect([held.status, held.body.status]).toEqual([200, 'held']);
      const videoId = await seedVideo(api.store, me);
      const check = {
        videoId,
        source: 'automatic',
        reference: 'hash-match',
        reason: null,
        legal: false,
      } as const;
      await createHoldCommands(api.store).place(check, 'automatic');
      expect((await video(videoId)).status).toBe('held');
    },
  );

  it('lasts while any source holds it [HLD-001, HLD-002]', async () => {
    const videoId = await seedVideo(api.store, me);
    const holds = createHoldCommands(api.store);
    const check = { videoId, source: 'automatic', reference: 'hash-match' } as const;
    const object = { videoId, source: 'kubernetes', reference: 'uid-1' } as const;
    await holds.place({ ...check, reason: 'Known file', legal: false }, 'automatic');
    await holds.place({ ...object, reason: null, legal: false }, 'kubernetes:default/hold');
    await hold(videoId, { reason: 'Team' });
    expect(await events(videoId)).toEqual(['video.ready', 'video.held: Known file']);
    await lift(videoId);
    expect((await video(videoId)).status).toBe('held');
    await holds.lift(check, 'automatic');
    expect((await video(videoId)).status).toBe('held');
    await holds.lift({ ...object, reference: 'uid-2' }, 'kubernetes:default/other');
    expect((await video(videoId)).status).toBe('held');
    await holds.lift(object, 'kubernetes:default/hold');
    expect((await video(videoId)).status).toBe('ready');
    expect((await events(videoId)).slice(2)).toEqual(['video.ready']);
  });

  it('lifts what is not held with 200 and tells nobody [ADM-202]', async () => {
    for (const status of ['ready', 'uploading', 'processing', 'failed'] as const) {
      const videoId = await seedVideo(api.store, me, { status });
      const before = await events(videoId);
      expect((await lift(videoId)).body.status).toBe(status);
      expect(await events(videoId)).toEqual(before);
    }
  });

  it('at the same time as a lift ends in one of both, never in between', async () => {
    const videoId = await seedVideo(api.store, me);
    await Promise.all([hold(videoId), lift(videoId), hold(videoId), lift(videoId)]);
    const { rowCount } = await api.store.query(
      'select from video_holds where video_id = $1 and lifted_at is null',
      [videoId],
    );
    expect((await video(videoId)).status).toBe(rowCount === 0 ? 'ready' : 'held');
  });
});

describe('deleting a video under a legal hold', () => {
  it('hides it, and its files stay until the hold is lifted [HLD-009]', async () => {
    const videoId = await seedVideo(api.store, me);
    await hold(videoId, { legal: true });
    const path = `/v1/projects/${me.projectId}/videos/${videoId}`;
    expect(outcome(await api.ask(`DELETE ${path}`, { bearer: me.full }))).toBe('204');
    expect(outcome(await api.ask(`GET ${path}`, { bearer: me.full }))).toBe('404 not_found');
    expect(await doomed(videoId)).toEqual([false]);
    expect(outcome(await lift(videoId))).toBe('200');
    expect(await doomed(videoId)).toEqual([true]);
    expect(outcome(await lift(videoId))).toBe('404 not_found');
    expect(await events(videoId)).toEqual(['video.ready']);
  });

  it('keeps them while another legal hold lasts', async () => {
    const videoId = await seedVideo(api.store, me);
    const second = { videoId, source: 'kubernetes', reference: 'uid' } as const;
    await hold(videoId, { legal: true });
    await createHoldCommands(api.store).place({ ...second, reason: null, legal: true }, 'test');
    await api.ask(`DELETE /v1/projects/${me.projectId}/videos/${videoId}`, { bearer: me.full });
    await lift(videoId);
    expect(await doomed(videoId)).toEqual([false]);
    await createHoldCommands(api.store).lift(second, 'test');
    expect(await doomed(videoId)).toEqual([true]);
  });
});

describe('a video that fails under a legal hold', () => {
  it.each([
    ['lifted', (videoId: string) => lift(videoId)],
    ['no longer a legal one', (videoId: string) => hold(videoId, { legal: false })],
  ])('over a limit: its file stays until the hold is %s', async (_what, end) => {
    const videoId = await seedVideo(api.store, me, { status: 'processing' });
    await hold(videoId, { legal: true });
    await failEncode(api.store, videoId, 'plan_limit_reached');
    expect(await doomed(videoId)).toEqual([false]);
    await end(videoId);
    expect(await doomed(videoId)).toEqual([true]);
  });

  it('not for its size: the original stays for a retry', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'processing' });
    await hold(videoId, { legal: true });
    await failEncode(api.store, videoId, 'encoding_failed');
    await lift(videoId);
    expect(await doomed(videoId)).toEqual([false]);
  });
});

describe('removing a video', () => {
  it.each(['uploading', 'processing', 'ready', 'failed'] as const)(
    'works in %s and tells the customer why [VID-112, ADM-203, EVT-004]',
    async (status) => {
      const videoId = await seedVideo(api.store, me, { status });
      const before = await events(videoId);
      const answer = await admin(`DELETE videos/${videoId}?reason=Stolen%20work`);
      expect([answer.status, answer.body]).toEqual([204, undefined]);
      expect(await events(videoId)).toEqual([...before, 'video.removed: Stolen work']);
      expect(await doomed(videoId)).toEqual([true]);
      expect(await audit(videoId)).toEqual(['admin video.remove']);
      expect(outcome(await admin(`DELETE videos/${videoId}`))).toBe('404 not_found');
    },
  );

  it('is silent for a legal matter, and without a reason has none [EVT-008]', async () => {
    const legal = await seedVideo(api.store, me);
    await admin(`DELETE videos/${legal}?reason=Court&legal=true`);
    expect(await events(legal)).toEqual(['video.ready']);
    const plain = await seedVideo(api.store, me);
    await admin(`DELETE videos/${plain}`);
    expect(await events(plain)).toEqual(['video.ready', 'video.removed']);
  });
});

describe('encoding a failed video again', () => {
  const jobOf = async (videoId: string): Promise<string> => {
    const { rows } = await api.store.query<{ id: string }>(
      'select current_job_id as id from videos where id = $1',
      [videoId],
    );
    return rows[0]?.id ?? '';
  };

  it('starts a new job [VID-113, ADM-208]', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'failed', failureCode: 'encoding_failed' });
    const failed = await jobOf(videoId);
    const answer = await admin(`POST encode-jobs/${failed}/retry`);
    expect(answer.body).toMatchObject({ id: videoId, status: 'processing', failure: null });
    const current = await jobOf(videoId);
    expect(current).not.toBe(failed);
    const { rows } = await api.store.query(
      `select t.kind, t.status from encode_tasks t where t.job_id = $1`,
      [current],
    );
    expect(rows).toEqual([{ kind: 'plan', status: 'queued' }]);
    expect(await audit(videoId)).toEqual(['admin encode.retry']);
    expect(outcome(await admin(`POST encode-jobs/${failed}/retry`))).toBe('409 invalid_video_state');
  });

  it('is refused for a job that is not the video’s latest', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'failed' });
    const first = await jobOf(videoId);
    await admin(`POST encode-jobs/${first}/retry`);
    await failEncode(api.store, videoId);
    expect(outcome(await admin(`POST encode-jobs/${first}/retry`))).toBe('409 invalid_video_state');
    expect(outcome(await admin(`POST encode-jobs/${await jobOf(videoId)}/retry`))).toBe('200');
  });

  it('is refused over a plan limit, for a video that is not failed, and for an unknown job [VID-114]', async () => {
    const over = await seedVideo(api.store, me, { status: 'failed', failureCode: 'plan_limit_reached' });
    expect(outcome(await admin(`POST encode-jobs/${await jobOf(over)}/retry`))).toBe(
      '409 invalid_video_state',
    );
    const ready = await seedVideo(api.store, me);
    expect(outcome(await admin(`POST encode-jobs/${await jobOf(ready)}/retry`))).toBe(
      '409 invalid_video_state',
    );
    expect(outcome(await admin('POST encode-jobs/job_unknown/retry'))).toBe('404 not_found');
  });
});

describe('the team’s routes', () => {
  it('are not on the public port, and want the admin token [ADM-001, ADM-004]', async () => {
    const videoId = await seedVideo(api.store, me);
    const path = `/admin/videos/${videoId}/hold`;
    expect(outcome(await api.ask(`POST ${path}`, { bearer: adminToken, body: {} }))).toBe('404 not_found');
    for (const bearer of ['', 'wrong', me.full, internalSecret]) {
      const answer = await api.ask(`POST internal:${path}`, { bearer, body: {} });
      expect(outcome(answer)).toBe('401 unauthorized');
    }
    expect(outcome(await admin('POST videos/vid_unknown/hold', {}))).toBe('404 not_found');
    expect(outcome(await admin(`POST videos/${videoId}/hold`, { reason: '' }))).toBe('400 invalid_request');
    expect(outcome(await admin(`DELETE videos/${videoId}?legal=maybe`))).toBe('400 invalid_request');
    expect((await video(videoId)).status).toBe('ready');
  });
});

describe('a process of the CDN', () => {
  it('is noted when it says that it is there, with the secret alone [INT-202]', async () => {
    const put = (bootId: string, body: unknown, secret = internalSecret): Promise<Answer> =>
      api.ask(`PUT internal:/internal/cdn-processes/${bootId}`, {
        ...{ headers: { 'x-internal-secret': secret }, body },
      });
    const noted = async (): Promise<unknown[]> =>
      (await api.store.query('select boot_id, cut_off, confirmed_up_to from cdn_processes')).rows;
    const bootId = 'ab'.repeat(12);
    expect(outcome(await put(bootId, { cutOff: false }, 'wrong'))).toBe('401 unauthorized');
    expect(outcome(await put(bootId, { cutOff: 'maybe' }))).toBe('400 invalid_request');
    expect(outcome(await put('NO-BOOT', { cutOff: false }))).toBe('404 not_found');
    expect(await noted()).toEqual([]);
    const row = { boot_id: bootId, confirmed_up_to: new Date(0) };
    for (const cutOff of [false, true]) {
      expect(await put(bootId, { cutOff })).toMatchObject({ status: 200, body: { cutOff } });
      expect(await noted()).toEqual([{ ...row, cut_off: cutOff }]);
    }
  });
});

describe('the state that the CDN asks for', () => {
  const ask = (videoId: string, secret = internalSecret): Promise<Answer<PlaybackStateResponse>> =>
    api.ask<PlaybackStateResponse>(`GET internal:/internal/playback-state/${videoId}`, {
      headers: { 'x-internal-secret': secret },
    });

  it('is video and account with their versions, as the outbox tells them [INT-201]', async () => {
    const videoId = await seedVideo(api.store, me);
    const { status, body } = await ask(videoId);
    expect(status).toBe(200);
    expect(body).toEqual({
      video: {
        videoId,
        accountId: me.accountId,
        version: 3,
        status: 'ready',
        indexKey: `videos/${videoId}/encode/index.json`,
        projectId: me.projectId,
        title: expect.any(String) as unknown,
        captions: [],
      },
      project: {
        projectId: me.projectId,
        version: 1,
        branding: { hideLogo: false, primaryColor: null, logoUrl: null },
      },
      account: {
        accountId: me.accountId,
        version: 1,
        maxQuality: '2160p',
        overWatchLimit: false,
        whiteLabel: true,
      },
    });
    const { rows } = await api.store.query<{ state: unknown }>(
      `select value -> 'state' as state from outbox where key = $1 and topic = 'millrace.playback.state'
       order by id desc limit 1`,
      [videoId],
    );
    expect(rows[0]?.state).toEqual(body.video);
  });

  it('follows the plan, and every change is told with a higher version [LIM-110]', async () => {
    const videoId = await seedVideo(api.store, me);
    await api.store.query('update accounts set over_watch_limit = true where id = $1', [me.accountId]);
    for (const [planId, planStatus, state] of [
      ['starter', 'active', { maxQuality: '1080p', whiteLabel: false, overWatchLimit: false }],
      ['pro', 'canceled', { maxQuality: '720p', whiteLabel: false, overWatchLimit: true }],
      ['pro', 'active', { maxQuality: '2160p', whiteLabel: true, overWatchLimit: false }],
    ] as const) {
      const before = (await ask(videoId)).body.account?.version ?? 0;
      await api.operator.setPlan({ accountId: me.accountId, planId, planStatus });
      const { account } = (await ask(videoId)).body;
      expect(account).toMatchObject(state);
      expect(account?.version).toBeGreaterThan(before);
      const { rows } = await api.store.query<{ state: unknown }>(
        `select value -> 'state' as state from outbox where key = $1 order by id desc limit 1`,
        [me.accountId],
      );
      expect(rows[0]?.state).toEqual(account);
    }
  });

  it('knows a deleted video for 30 days [CDN-335]', async () => {
    const videoId = await seedVideo(api.store, me);
    await api.ask(`DELETE /v1/projects/${me.projectId}/videos/${videoId}`, { bearer: me.full });
    expect((await ask(videoId)).body.video?.status).toBe('deleted');
    const age = (days: string): Promise<unknown> =>
      api.store.query('update videos set deleted_at = clock_timestamp() - $2::interval where id = $1', [
        videoId,
        days,
      ]);
    await age('29 days 23 hours');
    expect((await ask(videoId)).body.video?.status).toBe('deleted');
    await age('30 days 1 second');
    expect(outcome(await ask(videoId))).toBe('404 not_found');
    expect(outcome(await ask('vid_unknown'))).toBe('404 not_found');
  });

  it('wants the internal secret, on the internal port [ADM-003]', async () => {
    const videoId = await seedVideo(api.store, me);
    for (const secret of ['', 'wrong', adminToken]) {
      expect(outcome(await ask(videoId, secret))).toBe('401 unauthorized');
    }
    const bare = await api.ask(`GET internal:/internal/playback-state/${videoId}`, { bearer: adminToken });
    expect(outcome(bare)).toBe('401 unauthorized');
    const outside = await api.ask(`GET /internal/playback-state/${videoId}`, {
      headers: { 'x-internal-secret': internalSecret },
    });
    expect(outcome(outside)).toBe('404 not_found');
  });
});
