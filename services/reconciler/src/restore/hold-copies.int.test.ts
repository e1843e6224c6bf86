import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FolderObjectStore } from '@millrace/objects/folder';
import {
  banAccount,
  declareRestored,
  doomedPrefixes,
  moveVideo,
  reconcileBanHolds,
  recordState,
} from '@millrace/store';
import { createStage, type Stage } from './testing/stage.ts';

describe('holds of a record that came back from a backup', () => {
  let stage: Stage;
  let { store, objects, addVideo, statusOf, hold, lift, copies, read, copyHolds } = {} as Stage;
  beforeAll(async () => {
    stage = await createStage();
    ({ store, objects, addVideo, statusOf, hold, lift, copies, read, copyHolds } = stage);
  });
  afterAll(() => stage.close());
  beforeEach(() => stage.reset());

  it('gets back the holds that were placed since, from their copies', async () => {
    for (const id of ['vid_old', 'vid_new', 'vid_gone', 'vid_free']) await addVideo(id);
    await hold('vid_old', 'before');
    await copyHolds();
    await hold('vid_new', 'since');
    await hold('vid_gone', 'since');
    await hold('vid_free', 'since');
    await copyHolds();
    await lift('vid_free');
    await copyHolds();
    expect(await copies()).toHaveLength(3);

    // The backup: it knows one hold, and one video less.
    await store.query(`delete from video_holds where video_id <> 'vid_old'`);
    await store.query(`delete from videos where id = 'vid_gone'`);
    await store.query(`update videos set status = 'ready' where id = 'vid_new'`);
    // What is no copy keeps none of the others back.
    await objects.put('record/holds/0', Buffer.from('{"id":'));
    await declareRestored(store, { actor: 'test' });
    await copyHolds();
    expect(await Promise.all(['vid_old', 'vid_new', 'vid_free'].map(statusOf))).toEqual([
      ...['held', 'held', 'ready'],
    ]);
    expect((await recordState(store)).holdsWanted).toBe(false);
    const { rows } = await store.query(
      `select reason, legal from video_holds where video_id = 'vid_new' and lifted_at is null`,
    );
    expect(rows).toEqual([{ reason: 'since', legal: true }]);

    // One that was placed again and lifted since is not wanted by the next restore.
    await copyHolds();
    await lift('vid_new');
    await copyHolds();
    await declareRestored(store, { actor: 'test' });
    await copyHolds();
    expect(await statusOf('vid_new')).toBe('ready');
  });

  it('had its copies kept true: one that changed is written again, one that was lifted goes', async () => {
    const videoId = await addVideo('vid_1');
    await hold(videoId, 'first');
    await copyHolds();
    await hold(videoId, 'second');
    expect(await copyHolds()).toBe(1);
    const [key = ''] = await copies();
    expect(await read(key)).toMatchObject({ videoId, reason: 'second' });
    expect(await copyHolds()).toBe(0);
    await lift(videoId);
    await copyHolds();
    expect(await copies()).toEqual([]);
    expect(await copyHolds()).toBe(0);
  });

  /** The backup: it does not know the holds. */
  const loseHolds = async (): Promise<void> => {
    await store.query('delete from video_holds');
    await store.query(`update videos set status = 'ready'`);
    await declareRestored(store, { actor: 'test' });
  };
  const standing = async (): Promise<unknown[]> =>
    (await store.query('select video_id as id, legal from video_holds where lifted_at is null')).rows;

  it('has them on a video, too, that was deleted before they were back: its files stay [HLD-009]', async () => {
    await addVideo('vid_1');
    await store.query(
      `insert into object_prefixes (prefix, video_id, kind, created_at) values ('v/1/', 'vid_1', 'source', now())`,
    );
    await hold('vid_1', 'since');
    await copyHolds();
    await loseHolds();
    await store.transaction((tx) => moveVideo(tx, 'vid_1', { type: 'customer_delete' }));
    expect(await doomedPrefixes(store, 10)).toHaveLength(1);
    await copyHolds();
    expect(await standing()).toEqual([{ id: 'vid_1', legal: true }]);
    expect(await doomedPrefixes(store, 10)).toEqual([]);
    await lift('vid_1');
    expect(await doomedPrefixes(store, 10)).toHaveLength(1);
  });

  it('has them on a video that failed meanwhile, in case it is encoded again', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'since');
    await copyHolds();
    await loseHolds();
    await store.query(
      `update videos set status = 'failed', failure_code = 'encoding_failed', failure_message = 'x'`,
    );
    await copyHolds();
    expect([await standing(), await statusOf('vid_1')]).toEqual([[{ id: 'vid_1', legal: true }], 'failed']);
  });

  it('keeps those of a ban that it does not know: the account is banned again', async () => {
    await addVideo('vid_1');
    const ban = { accountId: 'acc_1', banned: true, holdVideos: true, reason: 'abuse', actor: 'test' };
    await store.transaction((tx) => banAccount(tx, ban));
    await reconcileBanHolds(store);
    await copyHolds();
    await store.query('update accounts set banned_at = null, ban_holds_videos = false');
    await loseHolds();
    await copyHolds();
    expect(await reconcileBanHolds(store)).toBe(0);
    expect(await statusOf('vid_1')).toBe('held');
    await store.transaction((tx) => banAccount(tx, { ...ban, banned: false }));
    await reconcileBanHolds(store);
    expect(await statusOf('vid_1')).toBe('ready');
  });

  it('gets none back from a former leader that is still at it when one was lifted', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'since');
    await copyHolds();
    await loseHolds();
    const paused: FolderObjectStore = {
      ...objects,
      get: async (...args) => {
        const read = await objects.get(...args);
        await copyHolds();
        await lift('vid_1');
        return read;
      },
    };
    await copyHolds(paused);
    expect(await statusOf('vid_1')).toBe('ready');
  });

  it('gets back all but one that the store does not give, and that one later; each is told once', async () => {
    const ids = ['vid_1', 'vid_2', 'vid_3'];
    for (const id of ids) await addVideo(id);
    for (const id of ids) await hold(id, 'since');
    await copyHolds();
    await loseHolds();
    const [, failing] = await copies();
    const broken: FolderObjectStore = {
      ...objects,
      get: (key, ...more) =>
        key === failing ? Promise.reject(new Error('broken key')) : objects.get(key, ...more),
    };
    for (let tries = 0; tries < 2; tries++) {
      await expect(copyHolds(broken)).rejects.toThrow('1 copies of holds');
      expect(await standing()).toHaveLength(2);
    }
    expect((await recordState(store)).holdsWanted).toBe(true);
    await copyHolds();
    expect(await standing()).toHaveLength(3);
    const { rows } = await store.query<{ holds: number }>(
      `select count(*) as holds from audit where actor = 'restore' and action = 'video.hold' and subject = any($1)
         and at >= (select restored_at from record_state)`,
      [ids],
    );
    expect(rows[0]?.holds).toBe(3);
  });

  it('keeps the copy of a hold that was placed again while that of its predecessor could not be deleted', async () => {
    await addVideo('vid_1');
    await hold('vid_1', 'first');
    await copyHolds();
    await lift('vid_1');
    await expect(
      copyHolds({ ...objects, deleteMany: () => Promise.reject(new Error('broken key')) }),
    ).rejects.toThrow('1 copies of holds');
    await hold('vid_1', 'second');
    await copyHolds({ ...objects, deleteMany: () => Promise.reject(new Error('broken key')) });
    await copyHolds();
    const [key] = await copies();
    expect(await read(key)).toMatchObject({ reason: 'second' });
  });
});
