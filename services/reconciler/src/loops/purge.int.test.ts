import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseKeySet } from '@millrace/domain';
import { createFolderObjectStore, type FolderObjectStore } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, createHoldCommands, type Database, markPurgedVideos } from '@millrace/store';
import { captureLogger, createTestDatabase } from '@millrace/testing';
import { orphanUploadsLoop, purgeLoop } from './purge.ts';

const signal = new AbortController().signal;
const legalHold = { source: 'admin', reference: 'admin', reason: null, legal: true } as const;

describe('purging objects', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let folder: string;
  let objects: FolderObjectStore;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    folder = await mkdtemp(join(tmpdir(), 'millrace-purge-'));
    objects = await createFolderObjectStore({
      root: folder,
      publicUrl: 'http://127.0.0.1:1',
      keys: parseKeySet(`k1:${'s'.repeat(32)}`),
      clock: systemClock,
      logger: silentLogger,
      pageSize: 2,
    });
    await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
      values ('acc_1', 'A', 'free', 1, now(), now())`);
    await store.query(`insert into projects (id, account_id, name, created_at, updated_at)
      values ('prj_1', 'acc_1', 'P', now(), now())`);
  });
  afterAll(async () => {
    await objects.close();
    await store.close();
    await rm(folder, { recursive: true, force: true });
    await database.drop();
  });

  /** A deleted video with one tombstoned prefix. */
  async function doom(name: string, kind: 'source' | 'attempt' = 'attempt'): Promise<string> {
    const video = `vid_${name}`;
    await store.query(
      `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at, deleted_at)
       values ($1, 'prj_1', 'acc_1', 'T', 'ready', 1, now(), now(), now())`,
      [video],
    );
    await store.query(
      `insert into object_prefixes (prefix, video_id, kind, created_at, delete_after)
       values ($1, $2, $3, now(), now())`,
      [`${name}/`, video, kind],
    );
    return video;
  }
  const parts = (laterMs = 0) => ({
    ...{ store, logger: silentLogger },
    clock: { ...systemClock, now: () => new Date(Date.now() + laterMs) },
  });
  const run = (): Promise<number> => purgeLoop({ ...parts(), objects }).run(signal);
  const keys = async (prefix: string): Promise<string[]> =>
    (await objects.list(prefix)).items.map((item) => item.key);
  const isPurged = async (video: string): Promise<boolean | undefined> =>
    (
      await store.query<{ purged: boolean }>(
        'select purged_at is not null as purged from videos where id = $1',
        [video],
      )
    ).rows[0]?.purged;
  const dayPasses = (): Promise<unknown> =>
    store.query(
      `update object_prefixes set purged_at = purged_at - interval '25 hours' where purged_at is not null`,
    );

  it('deletes every object under a tombstoned prefix, over several pages, and no other [VID-111]', async () => {
    await doom('gone');
    for (let i = 0; i < 5; i++) await objects.put(`gone/${i}`, Buffer.from('x'));
    await objects.put('gonebutnot/0', Buffer.from('x'));
    expect(await run()).toBe(1);
    expect(await keys('gone/')).toEqual([]);
    expect(await keys('gonebutnot/')).toEqual(['gonebutnot/0']);
    expect(await run()).toBe(0);
  });

  it('looks again a day later and ends only when nothing was left', async () => {
    const video = await doom('twice');
    await run();
    await objects.put('twice/late', Buffer.from('written by a worker that had been paused'));
    await dayPasses();
    await run();
    expect(await keys('twice/')).toEqual([]);
    await dayPasses();
    await run();
    await markPurgedVideos(store);
    expect(await isPurged(video)).toBe(true);
    const { rows } = await store.query('select from object_prefixes where video_id = $1', [video]);
    expect(rows).toEqual([]);
  });

  it('marks a video as purged that has no object left, and no other', async () => {
    // Its prefixes went while it was not deleted yet: those of a failed one do, a day after.
    const [late, alive, waiting] = [await doom('late'), await doom('alive'), await doom('waiting')];
    await store.query('delete from object_prefixes where video_id = any($1)', [[late, alive]]);
    await store.query('update videos set deleted_at = null where id = $1', [alive]);
    await markPurgedVideos(store);
    expect(await Promise.all([late, alive, waiting].map(isPurged))).toEqual([true, false, false]);
    expect([await markPurgedVideos(store), await run()]).toEqual([0, 1]);
  });

  it('waits while a legal hold stands, whenever that came', async () => {
    const video = await doom('replaced');
    await objects.put('replaced/0', Buffer.from('x'));
    await store.query('update videos set deleted_at = null where id = $1', [video]);
    const holds = createHoldCommands(store);
    await holds.place({ ...legalHold, videoId: video }, 'test');
    expect(await run()).toBe(0);
    expect(await keys('replaced/')).toEqual(['replaced/0']);
    await holds.lift({ ...legalHold, videoId: video }, 'test');
    expect(await run()).toBe(1);
    expect(await keys('replaced/')).toEqual([]);
  });

  it('leaves what came under a legal hold since it was listed', async () => {
    for (const name of ['one', 'other']) {
      const video = await doom(name);
      await store.query('update videos set deleted_at = null where id = $1', [video]);
      await objects.put(`${name}/0`, Buffer.from('x'));
    }
    const holdsOther: FolderObjectStore = {
      ...objects,
      list: async (prefix, after) => {
        const other = prefix === 'one/' ? 'other' : 'one';
        await createHoldCommands(store).place({ ...legalHold, videoId: `vid_${other}` }, 'test');
        return objects.list(prefix, after);
      },
    };
    expect(await purgeLoop({ ...parts(), objects: holdsOther }).run(signal)).toBe(1);
    expect([...(await keys('one/')), ...(await keys('other/'))]).toHaveLength(1);
  });

  it('aborts an upload that is still open under a tombstoned source', async () => {
    const video = await doom('source', 'source');
    const uploadId = await objects.createUpload('source/file');
    await store.query(
      `insert into uploads (id, video_id, project_id, account_id, object_key, store_upload_id, state, declared_bytes,
         content_type, part_size_bytes, part_count, created_at, expires_at)
       values ('upl_1', $1, 'prj_1', 'acc_1', 'source/file', $2, 'cancelled', 1, 'video/mp4', 1, 1, now(), now())`,
      [video, uploadId],
    );
    await run();
    expect((await objects.listUploads()).items).toEqual([]);
  });

  it('leaves the parts of a closed upload while a legal hold stands', async () => {
    const video = await doom('parts', 'source');
    const uploadId = await objects.createUpload('parts/file');
    await store.query(
      `insert into uploads (id, video_id, project_id, account_id, object_key, store_upload_id, state, declared_bytes,
         content_type, part_size_bytes, part_count, created_at, expires_at)
       values ('upl_2', $1, 'prj_1', 'acc_1', 'parts/file', $2, 'expired', 1, 'video/mp4', 1, 1, now(), now())`,
      [video, uploadId],
    );
    await store.query(
      `insert into video_holds (id, video_id, source, reference, legal, placed_at)
       values ('hld_parts', $1, 'admin', 'admin', true, now())`,
      [video],
    );
    const orphans = (): Promise<number> => orphanUploadsLoop({ ...parts(86_500_000), objects }).run(signal);
    expect([await run(), await orphans()]).toEqual([0, 0]);
    expect((await objects.listUploads()).items).toHaveLength(1);
    await createHoldCommands(store).lift({ ...legalHold, videoId: video }, 'test');
    expect(await run()).toBe(1);
    expect((await objects.listUploads()).items).toEqual([]);
  });

  it('goes on with the next prefix when one cannot be purged, and when a hundred cannot', async () => {
    const video = await doom('bad');
    await store.query(
      `insert into object_prefixes (prefix, video_id, kind, created_at, delete_after)
       select 'bad/' || n || '/', $1, 'attempt', now(), now() - interval '1 hour' from generate_series(1, 101) n`,
      [video],
    );
    await doom('fine');
    await objects.put('fine/0', Buffer.from('x'));
    const log = captureLogger();
    const failing = {
      ...objects,
      list: (prefix: string, after?: string) =>
        prefix.startsWith('bad/') ? Promise.reject(new Error('store down')) : objects.list(prefix, after),
    };
    const loop = purgeLoop({ ...parts(), objects: failing, logger: log.logger });
    expect([await loop.run(signal), await loop.run(signal)]).toEqual([0, 1]);
    expect(await keys('fine/')).toEqual([]);
    expect(log.text()).toContain('store down');
    // From the oldest on again.
    await doom('later');
    await store.query(
      `update object_prefixes set delete_after = now() - interval '2 hours' where prefix = 'later/'`,
    );
    expect(await loop.run(signal)).toBe(1);
    await store.query('delete from object_prefixes where video_id = $1', [video]);
  });

  it('aborts uploads that the record does not know, once they are a day old', async () => {
    await objects.createUpload('orphan/file');
    const at = (ms: number, instead: Partial<FolderObjectStore> = {}): Promise<number> =>
      orphanUploadsLoop({ ...parts(ms), objects: { ...objects, ...instead } }).run(signal);
    expect(await at(0)).toBe(0);
    expect(await at(86_000_000)).toBe(0);
    expect(await at(86_500_000)).toBe(1);
    expect((await objects.listUploads()).items).toEqual([]);

    // One that cannot be aborted keeps none of the others.
    await objects.createUpload('stuck/file');
    await objects.createUpload('orphan/file');
    const abort: FolderObjectStore['abort'] = (upload) =>
      upload.key === 'stuck/file' ? Promise.reject(new Error('no')) : objects.abort(upload);
    expect(await at(86_500_000, { abort })).toBe(1);
    expect((await objects.listUploads()).items.map(({ key }) => key)).toEqual(['stuck/file']);
    expect(await at(86_500_000)).toBe(1);
  });
});
