import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseKeySet } from '@millrace/domain';
import { createFolderObjectStore, type FolderObjectStore } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, createHoldCommands, type Database, type HoldReference } from '@millrace/store';
import { createTestDatabase } from '@millrace/testing';
import { holdCopiesLoop } from '../hold-copies.ts';
import { RestoreGuard } from '../marks.ts';

const signal = new AbortController().signal;

/** A record with one project, a bucket, and what a leader does with both. */
export interface Stage {
  store: Database;
  objects: FolderObjectStore;
  /** Without videos, copies and marks, as it was in the beginning. */
  reset(): Promise<void>;
  close(): Promise<void>;
  addVideo(id: string): Promise<string>;
  statusOf(videoId: string): Promise<string | undefined>;
  /** The hold that the team places. */
  nameOf(videoId: string): HoldReference;
  hold(videoId: string, reason: string): Promise<unknown>;
  lift(videoId: string): Promise<unknown>;
  /** Keys of all copies. */
  copies(): Promise<string[]>;
  /** What a copy says. */
  read(key: string | undefined): Promise<unknown>;
  /** Of a leader that begins. */
  guard(): RestoreGuard;
  /** One run of the loop that copies holds, and places them again, with another bucket or as it is. */
  copyHolds(objects?: FolderObjectStore): Promise<number>;
  /** A leader that runs for some minutes. */
  live(minutes: number): Promise<void>;
  /** How many things a sweep mends that would mend one. */
  sweep(by?: RestoreGuard): Promise<number>;
}

export async function createStage(): Promise<Stage> {
  const database = await createTestDatabase();
  const store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  const folder = await mkdtemp(join(tmpdir(), 'millrace-restore-'));
  const objects = await createFolderObjectStore({
    ...{ root: folder, publicUrl: 'http://127.0.0.1:1', clock: systemClock, logger: silentLogger },
    ...{ keys: parseKeySet(`k1:${'s'.repeat(32)}`), pageSize: 2 },
  });
  await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
    values ('acc_1', 'A', 'free', 1, now(), now())`);
  await store.query(`insert into projects (id, account_id, name, created_at, updated_at)
    values ('prj_1', 'acc_1', 'P', now(), now())`);

  const keys = async (prefix: string): Promise<string[]> => {
    const found: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await objects.list(prefix, after);
      found.push(...page.items.map(({ key }) => key));
      if (page.next === null) return found;
      after = page.next;
    }
  };
  const nameOf: Stage['nameOf'] = (videoId) => ({ videoId, source: 'admin', reference: 'admin' });
  const guard = (): RestoreGuard => new RestoreGuard({ store, objects, logger: silentLogger });
  const holds = createHoldCommands(store);
  return {
    ...{ store, objects, nameOf, guard },
    reset: async () => {
      for (const table of ['video_holds', 'events', 'outbox', 'object_prefixes', 'videos'])
        await store.query(`delete from ${table}`);
      await store.query(
        'update record_state set mark = 0, sweeps_off = false, holds_wanted = false, epoch = 0',
      );
      await store.query('update accounts set banned_at = null, ban_holds_videos = false');
      await objects.deleteMany(await keys('record/'));
    },
    close: async () => {
      await objects.close();
      await store.close();
      await rm(folder, { recursive: true, force: true });
      await database.drop();
    },
    addVideo: async (id) => {
      await store.query(
        `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
         values ($1, 'prj_1', 'acc_1', 'T', 'ready', 1, now(), now())`,
        [id],
      );
      return id;
    },
    statusOf: async (id) =>
      (await store.query<{ status: string }>('select status from videos where id = $1', [id])).rows[0]
        ?.status,
    hold: (videoId, reason) => holds.place({ ...nameOf(videoId), reason, legal: true }, 'test'),
    lift: (videoId) => holds.lift(nameOf(videoId), 'test'),
    copies: () => keys('record/holds/'),
    read: async (key = '') => {
      const chunks: Buffer[] = [];
      for await (const chunk of (await objects.get(key)).stream) chunks.push(chunk as Buffer);
      return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
    },
    copyHolds: (bucket = objects) =>
      holdCopiesLoop({ store, objects: bucket, logger: silentLogger }, guard()).run(signal),
    live: async (minutes) => {
      const loop = guard().loop();
      for (let i = 0; i < minutes; i++) await loop.run(signal);
    },
    sweep: (by = guard()) =>
      by.guarded({ name: 'sweep', everyMs: 1, run: () => Promise.resolve(1) }).run(signal),
  };
}
