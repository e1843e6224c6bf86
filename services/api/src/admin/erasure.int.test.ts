import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  createHoldCommands,
  doomedPrefixes,
  eraseVideos,
  forgetPrefix,
  markPurgedVideos,
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

let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
  await api.store.query(`update accounts set name = 'Other' where name = 'Layla Studio'`);
  await api.store.query(`update accounts set name = 'Layla Studio' where id = $1`, [me.accountId]);
});

interface Erased {
  accountId: string;
  erasedAt: string;
  doneAt: string | null;
}
const erase = (body: object = { name: 'Layla Studio', reason: 'asked for' }): Promise<Answer<Erased>> =>
  api.ask<Erased>(`POST internal:/admin/accounts/${me.accountId}/erase`, { bearer: adminToken, body });
const running = new AbortController().signal;
/** One run of the reconciler's loop, with more than one look where there is more than one video. */
const settle = (signal = running): Promise<number> => eraseVideos(api.store, signal, 3);
/** Requests that were admitted before the erasure began are over by then. */
const outlastRequests = async (): Promise<void> => {
  await api.store.query(`update accounts set erased_at = erased_at - interval '5 minutes' where id = $1`, [
    me.accountId,
  ]);
};
const statusesOf = async (): Promise<string[]> =>
  (
    await api.store.query<{ status: string }>(
      `select case when deleted_at is null then status else 'deleted' end as status from videos
       where account_id = $1 order by id`,
      [me.accountId],
    )
  ).rows.map(({ status }) => status);
/** What the reconciler does with objects in a day. */
async function purge(): Promise<void> {
  for (const doomed of await doomedPrefixes(api.store, 100)) await forgetPrefix(api.store, doomed);
  await markPurgedVideos(api.store);
}
const actions = async (): Promise<string[]> =>
  (
    await api.store.query<{ action: string }>(
      `select action from audit where subject = $1 and action like 'account.erase%' order by at`,
      [me.accountId],
    )
  ).rows.map(({ action }) => action);
const stateOf = async (videoId: string): Promise<unknown> =>
  (
    await api.ask(`GET internal:/internal/playback-state/${videoId}`, {
      headers: { 'x-internal-secret': internalSecret },
    })
  ).body;

/** Whatever says who they are, or what theirs is called. */
const traces = ['layla', 'secret.example', 'wedding', '501234567', 'hook.example'];

async function leaveTraces(): Promise<string> {
  const { store } = api;
  await store.query(
    `update users set email = 'layla@studio.example', display_name = 'Layla', issuer = 'https://id.example',
       subject = 'layla-1' where account_id = $1`,
    [me.accountId],
  );
  await store.query(`update projects set name = 'Layla', branding = '{"logoUrl":"https://secret.example/l.png"}'
    where account_id = '${me.accountId}'`);
  await store.query(`insert into whitelist (account_id, plan_id, email, created_at)
    values ('${me.accountId}', 'pro', 'layla@studio.example', now())`);
  await api.operator.addDomain({ projectId: me.projectId, hostname: 'secret.example.com', verified: true });
  await api.ask(`POST /v1/projects/${me.projectId}/webhook-endpoints`, {
    ...{ bearer: me.full, body: { url: 'https://hook.example.com/layla', events: ['video.held'] } },
  });
  const videoId = await seedVideo(store, me, { title: 'Wedding of Layla' });
  await seedVideo(store, me, { title: 'Wedding, again', status: 'processing' });
  await seedVideo(store, me, { title: 'Wedding, once more', status: 'failed' });
  await api.ask(`POST /v1/projects/${me.projectId}/videos/${videoId}/reports`, {
    ...{ bearer: me.full, body: { reason: 'Layla', detail: '+966501234567' } },
  });
  await leaveTracesOfFile(videoId);
  return videoId;
}

/** What was told of a video's file, and what encoders read in it or quote. */
async function leaveTracesOfFile(videoId: string): Promise<void> {
  const quoted = JSON.stringify({ message: 'title: Wedding of Layla', tags: { artist: 'Layla' } });
  const prefix = `videos/${videoId}/captions/`;
  for (const statement of [
    `insert into uploads (id, video_id, project_id, account_id, object_key, store_upload_id, state, declared_bytes,
       content_type, file_name, part_size_bytes, part_count, created_at, expires_at)
     values ('upl_' || '${videoId}', '${videoId}', '${me.projectId}', '${me.accountId}', 'k', 's', 'completed', 1,
       'video/mp4', 'Wedding of Layla.mp4', 1, 1, now(), now())`,
    `update encode_jobs set manifest = '${quoted}', report = '${quoted}', trace = '${quoted}' where video_id = '${videoId}'`,
    `update encode_tasks set last_error = '${quoted}' where video_id = '${videoId}'`,
    `insert into task_outputs (task_id, fence, prefix, output, created_at)
     select id, 1, 'p', '${quoted}', now() from encode_tasks where video_id = '${videoId}'`,
    `insert into object_prefixes (prefix, video_id, kind, created_at) values ('${prefix}', '${videoId}', 'captions', now())`,
    `insert into captions (video_id, language, name, prefix, bytes, created_at, updated_at)
     values ('${videoId}', 'ar', 'Layla speaks', '${prefix}', 1, now(), now())`,
    `update videos set failure_message = 'In Wedding.mp4' where account_id = '${me.accountId}' and failure_code is not null`,
    `insert into video_holds (id, video_id, source, reference, reason, legal, placed_at, copied_at)
     values ('hld_' || '${videoId}', '${videoId}', 'admin', 'admin', 'Layla asked', false, now(), now())`,
    `insert into idempotency (account_id, method, path, key, body_hash, body, created_at)
     values ('${me.accountId}', 'POST', '/', 'k', '\\x00', '${quoted}', now())`,
  ])
    await api.store.query(statement);
}

describe('erasing an account', () => {
  it('lets nobody in from the next request on, and repeats its answer', async () => {
    const { status, body } = await erase();
    expect([status, body.accountId, body.doneAt]).toEqual([202, me.accountId, null]);
    expect(Date.parse(body.erasedAt)).not.toBeNaN();
    for (const credential of [{ bearer: me.full }, { bearer: me.playback }, { cookie: me.cookie }])
      expect((await api.ask(`GET /v1/projects/${me.projectId}`, credential)).status).toBe(401);
    await settle();
    const again = await erase();
    expect([again.status, again.body]).toEqual([202, body]);
    await outlastRequests();
    await settle();
    expect((await erase()).body.doneAt).not.toBeNull();
    expect(await actions()).toEqual(['account.erase', 'account.erased']);
  });

  it('leaves no trace of its people in the record, but in events, until their retention ends', async () => {
    await leaveTraces();
    await erase();
    await settle();
    // The outbox is the bus's within seconds; events and deliveries go after 30 days; the audit log only grows.
    const kept = ['events', 'outbox', 'webhook_deliveries', 'audit'];
    const record = Object.entries(await recordOf(api.store, kept));
    const left = record.flatMap(([table, text]) =>
      traces.filter((trace) => text.toLowerCase().includes(trace)).map((trace) => `${table}: ${trace}`),
    );
    expect(left).toEqual([]);
  });

  it('stops its videos, dooms their objects, and is done when the last of them is gone', async () => {
    const videoId = await leaveTraces();
    await erase();
    await settle();
    expect(await stateOf(videoId)).toMatchObject({ video: { status: 'deleted' } });
    const { rows } = await api.store.query<{ open: number; by: string }>(
      `select count(*) filter (where p.delete_after is null) as open, min(v.deleted_by) as by
       from videos v left join object_prefixes p on p.video_id = v.id where v.account_id = $1`,
      [me.accountId],
    );
    expect(rows).toEqual([{ open: 0, by: 'erasure' }]);
    expect((await erase()).body.doneAt).toBeNull();
    await outlastRequests();
    await settle();
    expect((await erase()).body.doneAt).toBeNull();
    await purge();
    await settle();
    expect((await erase()).body.doneAt).not.toBeNull();
  });

  it('is done though objects were gone before the account was erased', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'failed' });
    await api.store.query('delete from object_prefixes where video_id = $1', [videoId]);
    await erase();
    await outlastRequests();
    await settle();
    await purge();
    await settle();
    expect((await erase()).body.doneAt).not.toBeNull();
  });

  it('stops all of its videos in one run, unless the reconciler no longer leads', async () => {
    await settle();
    for (let video = 0; video < 5; video += 1) await seedVideo(api.store, me);
    await erase();
    await settle(AbortSignal.abort());
    expect(new Set(await statusesOf())).toEqual(new Set(['ready']));
    // Each is deleted, and forgotten.
    expect(await settle()).toBe(10);
    expect(new Set(await statusesOf())).toEqual(new Set(['deleted']));
  });

  it('waits for a legal hold with its files and its title, and goes on when that is lifted', async () => {
    const videoId = await seedVideo(api.store, me, { title: 'Evidence' });
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    await createHoldCommands(api.store).place({ ...hold, reason: null, legal: true }, 'test');
    await erase();
    await outlastRequests();
    await settle();
    await purge();
    await settle();
    expect((await recordOf(api.store))['videos']).toContain('Evidence');
    expect((await erase()).body.doneAt).toBeNull();
    await createHoldCommands(api.store).lift(hold, 'test');
    await settle();
    await purge();
    await settle();
    expect((await recordOf(api.store))['videos']).not.toContain('Evidence');
    expect((await erase()).body.doneAt).not.toBeNull();
  });

  it('forgets nothing while holds of a restored record are on their way back', async () => {
    await seedVideo(api.store, me, { title: 'Evidence' });
    await erase();
    await api.store.query('update record_state set holds_wanted = true');
    await settle();
    expect(await statusesOf()).toEqual(['deleted']);
    expect((await recordOf(api.store))['videos']).toContain('Evidence');
    await api.store.query('update record_state set holds_wanted = false');
    await settle();
    expect((await recordOf(api.store))['videos']).not.toContain('Evidence');
  });

  it('stops the others though one cannot be deleted, and says so', async () => {
    const [stuck] = [await seedVideo(api.store, me), await seedVideo(api.store, me)];
    await api.store.query(
      `alter table videos add constraint stuck check (id <> '${stuck}' or deleted_at is null) not valid`,
    );
    try {
      await erase();
      await expect(settle()).rejects.toThrow(AggregateError);
      expect(await statusesOf()).toEqual(['ready', 'deleted']);
    } finally {
      await api.store.query('alter table videos drop constraint stuck');
    }
    await settle();
    expect(await statusesOf()).toEqual(['deleted', 'deleted']);
  });

  it('erases again what a request under way wrote after it, and is not done before those are over', async () => {
    await erase();
    await settle();
    const late = async (): Promise<void> => {
      for (const statement of [
        `insert into domains (id, project_id, account_id, hostname, status, challenge, created_at)
         values ('dom_late', '${me.projectId}', '${me.accountId}', 'late.example', 'verified', 'c', now())`,
        `insert into api_keys (id, project_id, name, scope, prefix, secret_hash, created_at)
         values ('key_late', '${me.projectId}', 'late', 'full', 'svk_late', '\\x00', now())`,
        `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
         values ('whe_' || gen_random_uuid(), '${me.projectId}', 'https://late.example/', '{}', 's', now())`,
        `insert into reports (id, video_id, account_id, reason, created_at)
         values ('rep_late', '${await seedVideo(api.store, me, { title: 'late' })}', '${me.accountId}', 'late', now())`,
        `update projects set name = 'late' where account_id = '${me.accountId}'`,
        `update users set display_name = 'late' where account_id = '${me.accountId}'`,
        `update accounts set name = 'late' where id = '${me.accountId}'`,
      ])
        await api.store.query(statement);
    };
    const left = async (): Promise<string[]> =>
      Object.entries(await recordOf(api.store, ['events', 'outbox', 'audit'])).flatMap(([table, text]) =>
        text.includes('late') ? [table] : [],
      );
    await late();
    await settle();
    expect(await left()).toEqual([]);
    await purge();
    await late();
    await purge();
    await outlastRequests();
    await settle();
    await purge();
    await settle();
    expect(await left()).toEqual([]);
    expect((await erase()).body.doneAt).not.toBeNull();
  });

  it('writes nothing where nothing is left', async () => {
    await leaveTraces();
    await erase();
    await settle();
    const before = await recordOf(api.store, toldLater);
    expect(await settle()).toBe(0);
    expect(await recordOf(api.store, toldLater)).toEqual(before);
  });

  it('leaves others alone', async () => {
    const other = await createTenant(api);
    const videoId = await seedVideo(api.store, other, { title: 'Theirs' });
    await erase();
    await settle();
    const { status, body } = await api.ask(`GET /v1/projects/${other.projectId}/videos/${videoId}`, {
      bearer: other.full,
    });
    expect([status, body]).toEqual([200, expect.objectContaining({ title: 'Theirs', status: 'ready' })]);
  });

  it.each([
    [{ name: 'Layla' }, 400],
    [{}, 400],
    [{ name: 'Layla Studio', now: true }, 400],
  ])('is not begun by %j', async (body, status) => {
    expect((await erase(body)).status).toBe(status);
    expect((await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full })).status).toBe(200);
    expect(await actions()).toEqual([]);
  });

  it('is final: its ban cannot be lifted', async () => {
    await erase();
    const { status } = await api.ask(`DELETE internal:/admin/accounts/${me.accountId}/ban`, {
      bearer: adminToken,
    });
    expect(status).toBe(404);
  });
});
