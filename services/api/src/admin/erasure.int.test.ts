import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createHoldCommands, doomedPrefixes, eraseVideos, forgetPrefix } from '@millrace/store';
import { recordOf } from '../testing/record.ts';
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
  await api.store.query(`update accounts set name = 'Layla Studio' where id = $1`, [me.accountId]);
});

interface Erased {
  accountId: string;
  erasedAt: string;
  doneAt: string | null;
}
const erase = (body: object = { name: 'Layla Studio', reason: 'asked for' }): Promise<Answer<Erased>> =>
  api.ask<Erased>(`POST internal:/admin/accounts/${me.accountId}/erase`, { bearer: adminToken, body });
/** What the reconciler does in time. */
const settle = async (): Promise<void> => {
  while ((await eraseVideos(api.store, 2)) > 0);
};
/** What the reconciler does with objects in a day. */
async function purge(): Promise<void> {
  for (const doomed of await doomedPrefixes(api.store, 100)) await forgetPrefix(api.store, doomed);
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
const traces = ['Layla', 'layla', 'secret.example', 'Wedding', '501234567', 'hook.example'];

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
  return videoId;
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
    expect([again.status, again.body.erasedAt]).toEqual([202, body.erasedAt]);
    expect(again.body.doneAt).not.toBeNull();
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
      traces.filter((trace) => text.includes(trace)).map((trace) => `${table}: ${trace}`),
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
    await purge();
    await settle();
    expect((await erase()).body.doneAt).not.toBeNull();
  });

  it('waits for a legal hold with its files and its title, and goes on when that is lifted', async () => {
    const videoId = await seedVideo(api.store, me, { title: 'Evidence' });
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    await createHoldCommands(api.store).place({ ...hold, reason: null, legal: true }, 'test');
    await erase();
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
