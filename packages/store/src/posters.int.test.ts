import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import {
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
} from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  claimTask,
  createDatabase,
  createEncodeJob,
  createHoldCommands,
  type Database,
  doomedPrefixes,
  failTask,
  findEncodeJob,
  findIngestReport,
  finishJob,
  finishPlan,
  finishPoster,
  finishTask,
  heartbeatTask,
  lockVideo,
  moveVideo,
  openAttemptPrefix,
  patchVideo,
  pauseEncoding,
  readPlaybackState,
  reapExpiredLeases,
  repairJobs,
  republishQueued,
  resumeEncoding,
} from './index.ts';

let testDatabase: TestDatabase;
let db: Database;
let account: SeededAccount;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  db = createDatabase({ connectionString: testDatabase.connectionString, logger: silentLogger });
});
afterAll(async () => {
  await db.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  await db.query(
    `truncate task_outputs, encode_tasks, encode_jobs, encode_shares, encode_pauses, object_prefixes, outbox, events,
       usage, usage_reservations, video_holds, videos, projects, accounts cascade`,
  );
  account = await seedAccount(db);
});

const claim = (taskClass: 'standard' | 'large' = 'standard'): Promise<ClaimedTask | null> =>
  claimTask(db, { worker: 'w', class: taskClass, leaseMs: 60_000 });
async function mustClaim(): Promise<ClaimedTask> {
  const task = await claim();
  if (task === null) throw new Error('nothing to claim');
  return task;
}
async function one<Row extends object>(sql: string, values: unknown[] = []): Promise<Row> {
  const { rows } = await db.query<Row>(sql, values);
  const row = rows[0];
  if (row === undefined) throw new Error(`no row: ${sql}`);
  return row;
}
const column = async (sql: string, values: unknown[] = []): Promise<unknown[]> =>
  (await db.query<{ it: unknown }>(sql, values)).rows.map((row) => row.it);

const openPrefix = async (task: ClaimedTask): Promise<string> => {
  const prefix = await openAttemptPrefix(db, attemptOf(task));
  if (prefix === null) throw new Error('no prefix');
  return prefix;
};

/** An encode with pictures, up to its assemble task, which is claimed. */
async function assembling(of: SeededAccount = account) {
  const videoId = await seedProcessingVideo(db, of);
  await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: of.accountId }));
  const plan = { manifest: { v: 1 }, plannerVersion: 1, durationMs: 60_000, report: { planned: true } };
  await finishPlan(db, await mustClaim(), { ...plan, tasks: [{ kind: 'images', index: 0, cost: 1 }] });
  const images = await mustClaim();
  const imagesPrefix = await openPrefix(images);
  await finishTask(db, images, { prefix: imagesPrefix, output: {}, report: {} });
  return { videoId, imagesPrefix, assemble: await mustClaim() };
}

async function assembled(task: ClaimedTask, posterAtSeconds?: number | null): Promise<string> {
  const prefix = await openPrefix(task);
  const qualities = ['360p'] as const;
  const encode = { prefix, indexKey: `${prefix}index.json`, qualities, durationMs: 60_000, report: {} };
  expect(await finishJob(db, task, { ...encode, posterAtSeconds })).toBe('done');
  return prefix;
}

/** A video that plays, and the prefixes of its poster and index. */
async function playing(of: SeededAccount = account) {
  const { videoId, imagesPrefix, assemble } = await assembling(of);
  const indexPrefix = await assembled(assemble, null);
  await db.query('delete from outbox');
  return { videoId, replaced: [imagesPrefix, indexPrefix].sort() };
}

const wish = (videoId: string, posterAtSeconds: number | null): Promise<unknown> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, videoId);
    if (video === null || video.deletedAt !== null) return 'gone';
    return patchVideo(tx, video, { posterAtSeconds });
  });
const remove = (videoId: string): Promise<unknown> =>
  db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }));

/** What an encoder does with the task of a poster, but for the picture. */
async function make(task: ClaimedTask, replaced: readonly string[] = []) {
  const job = await findEncodeJob(db, task.jobId);
  const prefix = (await openAttemptPrefix(db, attemptOf(task))) ?? 'none/';
  return {
    ...{ prefix, indexKey: `${prefix}index.json`, replaced },
    ...{ output: { posterAtSeconds: job?.posterAtSeconds }, report: { seconds: 1 } },
  };
}
const finish = async (task: ClaimedTask, replaced: readonly string[] = []) =>
  finishPoster(db, task, await make(task, replaced));

const jobsOf = (videoId: string): Promise<unknown[]> =>
  column(
    `select j.state || ' ' || string_agg(t.kind || ' ' || t.status, ', ' order by t.id) as it
     from encode_jobs j join encode_tasks t on t.job_id = j.id
     where j.video_id = $1 and j.id <> (select current_job_id from videos where id = $1) group by j.id order by j.id`,
    [videoId],
  );
const doomed = (): Promise<unknown[]> =>
  column('select prefix as it from object_prefixes where delete_after <= clock_timestamp() order by prefix');
const reportOf = async (videoId: string): Promise<unknown> =>
  (await findIngestReport(db, account.projectId, videoId))?.details['poster'];
const expireLease = (task: ClaimedTask) =>
  db.query(`update encode_tasks set lease_until = now() - interval '1 s' where id = $1`, [task.id]);
const makeDue = (task: ClaimedTask) =>
  db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);

describe('another moment for the poster', () => {
  it('of a video that plays is a job of its own, with the plan of the encode and a permit [VID-212]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    expect(await jobsOf(videoId)).toEqual(['running poster queued']);
    const permits = await column(`select value as it from outbox where topic = 'millrace.encode.tasks'`);
    const task = await mustClaim();
    expect(permits).toEqual([{ v: 1, taskId: task.id, kind: 'poster' }]);
    expect(await findEncodeJob(db, task.jobId)).toMatchObject({
      ...{ manifest: { v: 1 }, posterAtSeconds: 7 },
      indexKey: (await readPlaybackState(db, videoId))?.video?.indexKey,
    });
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('ok');
    expect(await reportOf(videoId)).toEqual({ state: 'running', atSeconds: 7 });
  });

  it('is none when it is the same, or when the encode has yet to make its poster [VID-213]', async () => {
    const { videoId } = await playing();
    await wish(videoId, null);
    await wish(videoId, 3);
    await finish(await mustClaim());
    await wish(videoId, 3);
    expect(await jobsOf(videoId)).toEqual(['succeeded poster done']);
    const encoding = await seedProcessingVideo(db, account);
    await wish(encoding, 3);
    expect(await column('select id as it from encode_jobs where video_id = $1', [encoding])).toEqual([]);
  });

  it('switches the index alone, and the CDN hears of it; nothing else changes [VID-212]', async () => {
    const { videoId, replaced } = await playing();
    const fixed = `status, title, qualities, duration_ms, ready_at, current_job_id, source_key, size_bytes`;
    const row = () => one(`select ${fixed} from videos where id = $1`, [videoId]);
    const moving = () =>
      one<{ version: number; updatedAt: Date }>(
        `select version, updated_at as "updatedAt" from videos where id = $1`,
        [videoId],
      );
    const usage = () => one('select stored_ms, upload_ms from usage');
    await wish(videoId, 7);
    const task = await mustClaim();
    await db.query('delete from outbox');
    const [before, wasMoving, wasUsage] = [await row(), await moving(), await usage()];
    const poster = await make(task, replaced);
    expect(await finishPoster(db, task, poster)).toBe('done');
    expect(await row()).toEqual(before);
    expect(await usage()).toEqual(wasUsage);
    const { version, updatedAt } = await moving();
    expect([version, updatedAt > wasMoving.updatedAt]).toEqual([wasMoving.version + 1, true]);
    const state = (await readPlaybackState(db, videoId))?.video;
    expect(state).toMatchObject({ status: 'ready', indexKey: poster.indexKey, version });
    expect(await column(`select value as it from outbox`)).toEqual([{ v: 1, kind: 'video', state }]);
    expect(await column(`select type as it from events`)).toEqual(['video.ready']);
    expect(await jobsOf(videoId)).toEqual(['succeeded poster done']);
    expect(await reportOf(videoId)).toEqual({ state: 'succeeded', atSeconds: 7, seconds: 1 });

    // Its answer may be lost: told again, it is done, and its objects stay.
    expect(await finishPoster(db, task, poster)).toBe('done');
    expect(await moving()).toEqual({ version, updatedAt });
    expect(await abandonAttempt(db, attemptOf(task))).toBeNull();
  });

  it('leaves what it replaces to the sweep when no backup names it any more, and its lost attempts at once', async () => {
    const { videoId, replaced } = await playing();
    await wish(videoId, 7);
    const lost = await mustClaim();
    const lostPrefix = await openPrefix(lost);
    await expireLease(lost);
    expect(await reapExpiredLeases(db)).toBe(1);
    const task = await mustClaim();
    expect(task).toMatchObject({ id: lost.id, losses: 1 });
    expect(await finish(lost)).toBe('lost');
    expect(await finish(task, replaced)).toBe('done');
    expect(await doomed()).toEqual([lostPrefix]);
    const later = await column(
      `select prefix as it from object_prefixes where delete_after between
         clock_timestamp() + interval '34 days' and clock_timestamp() + interval '35 days' order by prefix`,
    );
    expect(later).toEqual(replaced);
    expect(await column('select kind as it from object_prefixes where delete_after is null')).toEqual(
      expect.arrayContaining(['source', 'attempt']),
    );
    // Nobody wants them without the video.
    await remove(videoId);
    expect(await doomed()).toEqual(await column('select prefix as it from object_prefixes order by 1'));
  });

  it('counts when it is chosen again: what has not begun takes it, with all its tries [VID-213]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    const first = await mustClaim();
    await failTask(db, attemptOf(first), { kind: 'encoding', message: 'SIGSEGV' });
    expect(await claim()).toBeNull();
    await wish(videoId, 8);
    const task = await mustClaim();
    expect(task).toMatchObject({ id: first.id, jobId: first.jobId, failures: 0, fence: 2 });
    expect((await findEncodeJob(db, task.jobId))?.posterAtSeconds).toBe(8);
    expect(await jobsOf(videoId)).toEqual(['running poster processing']);
  });

  it('takes the place of one that is being made, whose result is thrown away [VID-213]', async () => {
    const { videoId, replaced } = await playing();
    const { indexKey } = await one<{ indexKey: string }>('select index_key as "indexKey" from videos');
    await wish(videoId, 7);
    const first = await mustClaim();
    const made = await make(first, replaced);
    await wish(videoId, 8);
    expect(await heartbeatTask(db, attemptOf(first), 60_000)).toBe('cancelled');
    expect(await finishPoster(db, first, made)).toBe('lost');
    expect(await failTask(db, attemptOf(first), { kind: 'encoding', message: 'late' })).toEqual({
      kind: 'lost',
    });
    expect(await doomed()).toEqual([made.prefix]);
    expect(await abandonAttempt(db, attemptOf(first))).toBe(made.prefix);
    expect((await readPlaybackState(db, videoId))?.video?.indexKey).toBe(indexKey);
    const second = await mustClaim();
    expect(second.jobId).not.toBe(first.jobId);
    expect(await finish(second, replaced)).toBe('done');
    expect(await jobsOf(videoId)).toEqual(['cancelled poster cancelled', 'succeeded poster done']);
    expect(await reportOf(videoId)).toMatchObject({ state: 'succeeded', atSeconds: 8 });
  });
});

describe('a poster that cannot be made', () => {
  const failure = { code: 'invalid_file', message: 'No picture.' } as const;

  it('leaves the video as it is, the report says why, and the same moment is tried again [VID-214]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    const video = () => one('select * from videos');
    const before = await video();
    const task = await mustClaim();
    const prefix = await openPrefix(task);
    expect(await failTask(db, attemptOf(task), { kind: 'source', failure, message: 'none' })).toEqual({
      kind: 'failed',
    });
    expect(await video()).toEqual(before);
    expect(await doomed()).toEqual([prefix]);
    expect(await column('select type as it from events')).toEqual(['video.ready']);
    expect(await reportOf(videoId)).toEqual({
      ...{ state: 'failed', atSeconds: 7, failure: { ...failure, task: 'poster' } },
    });
    await wish(videoId, 7);
    expect(await jobsOf(videoId)).toEqual(['failed poster failed', 'running poster queued']);
  });

  it.each([
    ['ffmpeg fails', 'encoding', 3],
    ['its workers are lost', 'lost', 6],
  ] as const)('is given up when %s again and again [VID-214, ENC-018]', async (_, kind, tries) => {
    const { videoId } = await playing();
    const before = await one('select stored_ms, upload_ms from usage');
    await wish(videoId, 7);
    let failed = 0;
    for (;;) {
      const task = (await claim()) ?? (await claim('large'));
      if (task === null) break;
      failed += 1;
      await openPrefix(task);
      if (kind === 'encoding') await failTask(db, attemptOf(task), { kind, message: 'SIGSEGV' });
      else {
        await expireLease(task);
        await reapExpiredLeases(db);
      }
      await makeDue(task);
    }
    expect(failed).toBe(tries);
    expect((await readPlaybackState(db, videoId))?.video?.status).toBe('ready');
    expect(await one('select stored_ms, upload_ms from usage')).toEqual(before);
    expect(await doomed()).toHaveLength(tries);
    expect(await reportOf(videoId)).toMatchObject({
      ...{ state: 'failed', failure: { code: 'encoding_failed', task: 'poster' } },
    });
    expect(JSON.stringify(await reportOf(videoId))).toContain('stays as it was');
  });
});

describe('while a poster is made', () => {
  it('deleting the video ends that, and nothing of it is kept [VID-117]', async () => {
    const { videoId, replaced } = await playing();
    await wish(videoId, 7);
    const task = await mustClaim();
    const made = await make(task, replaced);
    await remove(videoId);
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('cancelled');
    expect(await finishPoster(db, task, made)).toBe('lost');
    expect(await failTask(db, attemptOf(task), { kind: 'encoding', message: 'x' })).toEqual({ kind: 'lost' });
    expect(await openAttemptPrefix(db, attemptOf(task))).toBeNull();
    expect(await column('select prefix as it from object_prefixes where delete_after is null')).toEqual([]);
    expect(await jobsOf(videoId)).toEqual(['cancelled poster cancelled']);
  });

  it('a hold stops playing, not that: the video is held with its new poster, and then plays with it', async () => {
    const { videoId, replaced } = await playing();
    const holds = createHoldCommands(db);
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    await wish(videoId, 7);
    const task = await mustClaim();
    await holds.place({ ...hold, reason: null, legal: false }, 'admin');
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('ok');
    const poster = await make(task, replaced);
    expect(await finishPoster(db, task, poster)).toBe('done');
    const state = async () => (await readPlaybackState(db, videoId))?.video;
    expect(await state()).toMatchObject({ status: 'held', indexKey: poster.indexKey });
    await wish(videoId, 9);
    expect(await finish(await mustClaim(), [poster.prefix])).toBe('done');
    await holds.lift(hold, 'admin');
    expect((await state())?.status).toBe('ready');
  });

  it('what a legal hold keeps stays, replaced or not, until that is lifted [HLD-009]', async () => {
    const { videoId, replaced } = await playing();
    const holds = createHoldCommands(db);
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    const going = async (): Promise<string[]> => {
      await db.query(`update object_prefixes set delete_after = delete_after - interval '36 days'`);
      return (await doomedPrefixes(db, 100)).map(({ prefix }) => prefix).sort();
    };
    await wish(videoId, 7);
    expect(await finish(await mustClaim(), replaced)).toBe('done');
    // Before they go.
    await holds.place({ ...hold, reason: null, legal: true }, 'admin');
    expect(await going()).toEqual([]);
    await holds.lift(hold, 'admin');
    expect(await going()).toEqual(replaced);

    await holds.place({ ...hold, reason: null, legal: true }, 'admin');
    await wish(videoId, 8);
    const lost = await mustClaim();
    await openPrefix(lost);
    await remove(videoId);
    expect(await abandonAttempt(db, attemptOf(lost))).toBeNull();
    expect(await going()).toEqual([]);
    await holds.lift(hold, 'admin');
    expect(await going()).toEqual(await column('select prefix as it from object_prefixes order by 1'));
  });
});

describe('the task of a poster', () => {
  it('waits for the end of a pause', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    const pause = { scope: 'account', accountId: account.accountId } as const;
    await db.transaction((tx) => pauseEncoding(tx, { pause, reason: null, actor: 'admin' }));
    expect(await claim()).toBeNull();
    await db.transaction((tx) => resumeEncoding(tx, { pause, actor: 'admin' }));
    expect((await mustClaim()).kind).toBe('poster');
  });

  it('is left alone by the repair of jobs, and gets another permit when it waits for long', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    expect(await repairJobs(db)).toBe(0);
    await db.query('delete from outbox');
    await db.query(`update encode_tasks set run_after = now() - interval '1 h' where kind = 'poster'`);
    expect(await republishQueued(db, { olderThanMs: 60_000, limit: 10 })).toBe(1);
    expect(await column(`select value ->> 'kind' as it from outbox`)).toEqual(['poster']);
    await mustClaim();
    expect(await repairJobs(db)).toBe(0);
    expect(await jobsOf(videoId)).toEqual(['running poster processing']);
  });
});

describe('a moment that is chosen while the video is encoded', () => {
  it.each<[string, number | null | undefined, string[]]>([
    ['is a job after it when the encode’s pictures were made before', null, ['running poster queued']],
    ['is none when they were made by it', 5, []],
    ['is none when that is not known', undefined, []],
  ])('%s [VID-212]', async (_, madeFor, jobs) => {
    const { videoId, assemble } = await assembling();
    await wish(videoId, 5);
    expect(await jobsOf(videoId)).toEqual([]);
    await assembled(assemble, madeFor);
    expect(await jobsOf(videoId)).toEqual(jobs);
    expect((await readPlaybackState(db, videoId))?.video?.status).toBe('ready');
  });
});
