import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { parseKeySet } from '@millrace/domain';
import { createFolderObjectStore, type FolderObjectStore } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';
import {
  allowSweeps,
  createDatabase,
  createHoldCommands,
  type Database,
  declareRestored,
  recordState,
} from '@millrace/store';
import { createTestDatabase } from '@millrace/testing';
import { holdCopiesLoop } from './hold-copies.ts';
import { RestoreGuard } from './marks.ts';

const signal = new AbortController().signal;

describe('a record that came back from a backup', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let folder: string;
  let objects: FolderObjectStore;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    folder = await mkdtemp(join(tmpdir(), 'millrace-restore-'));
    objects = await createFolderObjectStore({
      ...{ root: folder, publicUrl: 'http://127.0.0.1:1', clock: systemClock, logger: silentLogger },
      ...{ keys: parseKeySet(`k1:${'s'.repeat(32)}`), pageSize: 2 },
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
  beforeEach(async () => {
    for (const table of ['video_holds', 'events', 'videos']) await store.query(`delete from ${table}`);
    await store.query(
      'update record_state set mark = 0, sweeps_off = false, holds_wanted = false, epoch = 0',
    );
    await objects.deleteMany(await keys('record/'));
  });

  async function keys(prefix: string): Promise<string[]> {
    const found: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await objects.list(prefix, after);
      found.push(...page.items.map(({ key }) => key));
      if (page.next === null) return found;
      after = page.next;
    }
  }
  const addVideo = async (id: string): Promise<string> => {
    await store.query(
      `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
       values ($1, 'prj_1', 'acc_1', 'T', 'ready', 1, now(), now())`,
      [id],
    );
    return id;
  };
  const statusOf = async (id: string): Promise<string | undefined> =>
    (await store.query<{ status: string }>('select status from videos where id = $1', [id])).rows[0]?.status;
  const hold = (videoId: string, reason: string): Promise<unknown> =>
    createHoldCommands(store).place(
      { videoId, source: 'admin', reference: 'admin', reason, legal: true },
      'test',
    );
  const copies = (): Promise<string[]> => keys('record/holds/');
  const guard = (): RestoreGuard => new RestoreGuard({ store, objects, logger: silentLogger });
  const copyHolds = (): Promise<number> =>
    holdCopiesLoop({ store, objects, logger: silentLogger }, guard()).run(signal);

  /** A leader that ran for some minutes. */
  const live = async (minutes: number): Promise<void> => {
    const loop = guard().loop();
    for (let i = 0; i < minutes; i++) await loop.run(signal);
  };
  const sweep = async (by = guard()): Promise<number> =>
    by.guarded({ name: 'sweep', everyMs: 1, run: () => Promise.resolve(1) }).run(signal);

  it('is told from one that went on, and sweeps are off until the team allows them', async () => {
    await live(3);
    expect(await sweep()).toBe(1);
    const { mark } = await recordState(store);
    await store.query('update record_state set mark = mark - 1');
    expect(await sweep()).toBe(0);
    expect(await recordState(store)).toMatchObject({ sweepsOff: true, mark });
    // Also for the next leader, and over more minutes.
    await live(2);
    expect(await sweep()).toBe(0);
    await allowSweeps(store, { actor: 'test' });
    expect(await sweep()).toBe(1);
    const { rows } = await store.query('select actor, action from audit order by at desc limit 2');
    expect(rows).toEqual([
      { actor: 'test', action: 'record.sweep' },
      { actor: 'reconciler', action: 'record.restored' },
    ]);
  });

  it('is looked for before the first sweep, and again when the bucket did not answer', async () => {
    const away = {
      ...objects,
      list: () => Promise.reject(new Error('away')),
    } as unknown as FolderObjectStore;
    const shaky = new RestoreGuard({ store, objects: away, logger: silentLogger });
    await expect(sweep(shaky)).rejects.toThrow('away');
    await live(1);
    await store.query('update record_state set mark = 0');
    away.list = (...args) => objects.list(...args);
    expect(await sweep(shaky)).toBe(0);
  });

  it('gets versions and fences above all of the life before, however often it comes back', async () => {
    await addVideo('vid_1');
    const versions = async (): Promise<number[]> => {
      const { rows } = await store.query<{ version: number }>(
        `select version from videos union all select version from accounts union all select version from projects`,
      );
      return rows.map(({ version }) => version);
    };
    await store.query('update videos set version = 70');
    const before = Date.now();
    await declareRestored(store, { actor: 'test' });
    const first = await versions();
    expect(Math.min(...first)).toBeGreaterThanOrEqual(before);
    // It lives on, then the same backup is taken again.
    await store.query('update videos set version = version + 5');
    const lived = await versions();
    await store.query('update videos set version = 70');
    await store.query('update accounts set version = 1');
    await store.query('update projects set version = 1');
    await declareRestored(store, { actor: 'test' });
    expect(Math.min(...(await versions()))).toBeGreaterThan(Math.max(...lived) - 5);
    expect((await versions()).every(Number.isSafeInteger)).toBe(true);
  });

  it('is made whole by the next leader when the first died midway, before any hold is placed again', async () => {
    await addVideo('vid_1');
    await live(2);
    await hold('vid_1', 'since');
    await copyHolds();
    // The backup.
    for (const table of ['video_holds', 'outbox']) await store.query(`delete from ${table}`);
    await store.query(`update videos set status = 'ready', version = 7`);
    await store.query('update record_state set mark = 0');
    for (const table of ['accounts', 'projects']) await store.query(`update ${table} set version = 7`);
    const before = Date.now();
    const dies: Database = {
      ...store,
      query: (text, ...more) =>
        text.includes('accounts') ? Promise.reject(new Error('killed')) : store.query(text, ...more),
    };
    const first = new RestoreGuard({ store: dies, objects, logger: silentLogger });
    await expect(sweep(first)).rejects.toThrow('killed');
    expect(await recordState(store)).toMatchObject({ sweepsOff: true, holdsWanted: false });

    await copyHolds();
    expect(await statusOf('vid_1')).toBe('held');
    const { rows } = await store.query<{ version: number }>(
      `select version from videos union all select version from accounts union all select version from projects
       union all select version from outbox where key = 'vid_1'`,
    );
    expect(rows.length).toBeGreaterThan(3);
    expect(Math.min(...rows.map(({ version }) => version))).toBeGreaterThanOrEqual(before);
    expect(await sweep()).toBe(0);
  });

  it('is raised in pages, each of which is looked at once', async () => {
    await store.query(
      `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at, version)
       select 'vid_' || n, 'prj_1', 'acc_1', 'T', 'ready', 1, now(), now(), case when n = 1 then 1e15 else 1 end
       from generate_series(1, 5001) n`,
    );
    const pages: unknown[] = [];
    const watched: Database = {
      ...store,
      query: (text, values, ...more) => {
        if (text.includes('update videos')) pages.push(values?.[1]);
        return store.query(text, values, ...more);
      },
    };
    await declareRestored(watched, { actor: 'test' });
    expect(pages).toHaveLength(3);
    expect(new Set(pages).size).toBe(3);
    const { rows } = await store.query<{ low: number; high: number }>(
      'select min(version) as low, max(version) as high from videos',
    );
    expect(rows[0]?.low).toBeGreaterThan(1);
    expect(rows[0]?.high).toBe(1e15);
  });

  it('gets back the holds that were placed since, from their copies', async () => {
    for (const id of ['vid_old', 'vid_new', 'vid_gone', 'vid_free']) await addVideo(id);
    await hold('vid_old', 'before');
    await copyHolds();
    await hold('vid_new', 'since');
    await hold('vid_gone', 'since');
    await hold('vid_free', 'since');
    await copyHolds();
    await createHoldCommands(store).lift(
      { videoId: 'vid_free', source: 'admin', reference: 'admin' },
      'test',
    );
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
    await createHoldCommands(store).lift({ videoId: 'vid_new', source: 'admin', reference: 'admin' }, 'test');
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
    const chunks: Buffer[] = [];
    for await (const chunk of (await objects.get(key)).stream) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ videoId, reason: 'second' });
    expect(await copyHolds()).toBe(0);
    await createHoldCommands(store).lift({ videoId, source: 'admin', reference: 'admin' }, 'test');
    await copyHolds();
    expect(await copies()).toEqual([]);
    expect(await copyHolds()).toBe(0);
  });
});
