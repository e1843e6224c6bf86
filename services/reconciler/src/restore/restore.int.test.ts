import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type FolderObjectStore } from '@millrace/objects/folder';
import { silentLogger } from '@millrace/platform';
import { allowSweeps, type Database, declareRestored, recordState } from '@millrace/store';
import { RestoreGuard } from './marks.ts';
import { createStage, type Stage } from './testing/stage.ts';

const signal = new AbortController().signal;

describe('a record that came back from a backup', () => {
  let stage: Stage;
  let { store, objects, addVideo, statusOf, hold, copyHolds, guard, live, sweep } = {} as Stage;
  beforeAll(async () => {
    stage = await createStage();
    ({ store, objects, addVideo, statusOf, hold, copyHolds, guard, live, sweep } = stage);
  });
  afterAll(() => stage.close());
  beforeEach(() => stage.reset());

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

  it('is noticed within the minute by a leader that outlives the record', async () => {
    const leader = guard();
    await leader.loop().run(signal);
    await live(4);
    expect(await sweep(leader)).toBe(1);
    await store.query('update record_state set mark = 2');
    await leader.loop().run(signal);
    expect(await sweep(leader)).toBe(0);
    expect((await recordState(store)).mark).toBe(6);
  });

  it('is noticed though a former leader leaves its mark late', async () => {
    const paused: FolderObjectStore = {
      ...objects,
      list: async (...args) => {
        if ((await recordState(store)).mark === 1) await live(2);
        return objects.list(...args);
      },
    };
    await new RestoreGuard({ store, objects: paused, logger: silentLogger }).loop().run(signal);
    await store.query('update record_state set mark = 2');
    expect(await sweep()).toBe(0);
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
});
