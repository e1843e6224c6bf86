import { describe, expect, it } from '@jest/globals';
import { seedAccount } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  failTask,
  finishJob,
  finishPlan,
  finishTask,
  heartbeatTask,
  moveVideo,
  openAttemptPrefix,
  reapExpiredLeases,
  repairJobs,
  replanVideo,
  republishQueued,
} from './index.ts';
import {
  claim,
  column,
  db,
  expireLease,
  finish,
  mustClaim,
  one,
  plannedJob,
  queueVideo,
  videoOf,
  somePlan,
  useEncodeQueue,
} from './testing/encode-queue.ts';

useEncodeQueue();

describe('finishing', () => {
  it('inserts exactly one assemble task when the last two tasks end at once', async () => {
    for (let round = 0; round < 10; round++) {
      const { jobId, tasks } = await plannedJob(await seedAccount(db));
      expect(await Promise.all(tasks.map((task) => finish(task)))).toEqual(['done', 'done']);
      expect(
        await one(
          `select count(*) filter (where kind = 'assemble') as assembles, max(j.remaining) as remaining
           from encode_tasks t join encode_jobs j on j.id = t.job_id where j.id = $1`,
          [jobId],
        ),
      ).toEqual({ assembles: 1, remaining: 0 });
      const assemble = await mustClaim();
      expect(assemble).toMatchObject({ kind: 'assemble', jobId });
    }
  });

  it('switches the record to the finished encode and leaves the losers to the sweep [VID-104]', async () => {
    const { videoId, tasks } = await plannedJob(await seedAccount(db));
    const lost = await openAttemptPrefix(db, attemptOf(tasks[0]));
    await expireLease(tasks[0]);
    await reapExpiredLeases(db);
    const again = await mustClaim();
    const winner = (await openAttemptPrefix(db, attemptOf(again))) ?? '';
    await finish(again, winner);
    await finish(tasks[1], (await openAttemptPrefix(db, attemptOf(tasks[1]))) ?? '');
    const assemble = await mustClaim();
    const prefix = (await openAttemptPrefix(db, attemptOf(assemble))) ?? '';
    const encode = {
      prefix,
      indexKey: `${prefix}index.json`,
      qualities: ['360p', '720p'] as const,
      durationMs: 59_960,
      report: { speed: 2 },
    };
    expect(await finishJob(db, assemble, encode)).toBe('done');
    expect(await finishJob(db, assemble, encode)).toBe('done');
    expect(
      await one(
        `select status, qualities, duration_ms as duration, index_key as key, ready_at is not null as ready
         from videos where id = $1`,
        [videoId],
      ),
    ).toEqual({
      status: 'ready',
      qualities: ['360p', '720p'],
      duration: 59_960,
      key: encode.indexKey,
      ready: true,
    });
    const { rows: doomed } = await db.query<{ prefix: string }>(
      'select prefix from object_prefixes where delete_after is not null',
    );
    expect(doomed).toEqual([{ prefix: lost }]);
    expect(await one('select state, report from encode_jobs')).toEqual({
      state: 'succeeded',
      report: { planned: true, speed: 2 },
    });
    expect(await one(`select count(*) from events where type = 'video.ready'`)).toEqual({ count: 1 });
  });

  it('ends an encode of a video that was deleted meanwhile: no finish, no prefix, no event [VID-117]', async () => {
    const { videoId, tasks } = await plannedJob(await seedAccount(db));
    const prefix = await openAttemptPrefix(db, attemptOf(tasks[0]));
    await db.transaction((tx) =>
      moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }),
    );
    expect(await heartbeatTask(db, attemptOf(tasks[0]), 60_000)).toBe('cancelled');
    expect(await finish(tasks[0])).toBe('lost');
    expect(await openAttemptPrefix(db, attemptOf(tasks[1]))).toBeNull();
    expect(await failTask(db, attemptOf(tasks[1]), { kind: 'encoding', message: 'x' })).toEqual({
      kind: 'lost',
    });
    expect(await abandonAttempt(db, attemptOf(tasks[0]))).toBe(prefix);
    expect(await one('select count(*) from events')).toEqual({ count: 0 });
    expect(await claim()).toBeNull();
  });

  it('gives no prefix for a video that was deleted a moment ago, whatever its task says', async () => {
    const { videoId, tasks } = await plannedJob(await seedAccount(db));
    await db.query(`update videos set deleted_at = now(), deleted_by = 'customer' where id = $1`, [videoId]);
    expect(await openAttemptPrefix(db, attemptOf(tasks[0]))).toBeNull();
    expect(await heartbeatTask(db, attemptOf(tasks[0]), 60_000)).toBe('cancelled');
    expect(await finish(tasks[0])).toBe('lost');
  });

  it('survives deleting and finishing at once, again and again, in one of two whole outcomes [VID-117]', async () => {
    for (let round = 0; round < 20; round++) {
      const { videoId, tasks } = await plannedJob(await seedAccount(db));
      await Promise.all([
        ...tasks.map((task) => finish(task)),
        db.transaction((tx) =>
          moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }),
        ),
      ]);
      expect(
        await one(
          `select count(*) as open from encode_tasks where video_id = $1 and status in ('queued', 'processing')`,
          [videoId],
        ),
      ).toEqual({ open: 0 });
      expect(await one('select state from encode_jobs where video_id = $1', [videoId])).toEqual({
        state: 'cancelled',
      });
    }
    // Locks are taken in one order everywhere: video, job, task. Rivals wait; none is a victim.
    await db.query('select pg_stat_force_next_flush()');
    expect(await one('select deadlocks from pg_stat_database where datname = current_database()')).toEqual({
      deadlocks: 0,
    });
  });
});

describe('replanVideo', () => {
  const chunkedPlan = {
    ...somePlan(),
    manifest: { chunks: 2 },
    tasks: [
      { kind: 'video' as const, index: 0, cost: 50 },
      { kind: 'video' as const, index: 1, cost: 50 },
      { kind: 'audio' as const, index: 0, cost: 2 },
    ],
  };
  const whole = {
    manifest: { chunks: 1 },
    videoTasks: [{ kind: 'video' as const, index: 0, cost: 100 }],
    forget: ['video-0'],
    report: { whole: true },
  };
  const chunkedJob = async () => {
    const job = await queueVideo(await seedAccount(db));
    expect(await finishPlan(db, await mustClaim(), chunkedPlan)).toBe('done');
    const tasks = [await mustClaim(), await mustClaim(), await mustClaim()];
    const of = (kind: string, index: number): ClaimedTask =>
      tasks.find((task) => task.kind === kind && task.index === index) as ClaimedTask;
    return { ...job, video: [of('video', 0), of('video', 1)] as const, audio: of('audio', 0) };
  };
  const openWork = async (jobId: string) => {
    const { rows } = await db.query<{ work: string }>(
      `select kind || '-' || index || ' ' || status as work from encode_tasks
       where job_id = $1 and kind <> 'plan' order by kind, index`,
      [jobId],
    );
    return rows.map(({ work }) => work);
  };

  it('makes the video anew while its chunks are still worked on, and keeps the sound', async () => {
    const { jobId, videoId, video, audio } = await chunkedJob();
    const written = await Promise.all(video.map((task) => openAttemptPrefix(db, attemptOf(task))));
    await finishTask(db, video[0], {
      ...{ prefix: written[0] ?? '', output: {}, report: { 'video-0': 'made', other: 'kept' } },
    });
    expect(await replanVideo(db, video[1], whole)).toBe('replanned');

    expect(await openWork(jobId)).toEqual(['audio-0 processing', 'video-0 queued']);
    expect(await one('select manifest, remaining, report from encode_jobs where id = $1', [jobId])).toEqual({
      ...{ manifest: { chunks: 1 }, remaining: 2 },
      report: { planned: true, other: 'kept', whole: true },
    });
    const { rows: doomed } = await db.query<{ prefix: string }>(
      'select prefix from object_prefixes where delete_after is not null order by prefix',
    );
    expect(doomed.map(({ prefix }) => prefix)).toEqual(written.sort());
    expect(await heartbeatTask(db, attemptOf(video[1]), 60_000)).toBe('lost');
    expect(await finish(video[1])).toBe('lost');

    const again = await mustClaim();
    expect(again).toMatchObject({ jobId, kind: 'video', index: 0 });
    await finish(audio);
    await finish(again);
    expect(await mustClaim()).toMatchObject({ kind: 'assemble' });
    expect(await repairJobs(db)).toBe(0);
    expect(await videoOf(videoId)).toMatchObject({ status: 'processing' });
  });

  it('takes the place of an assembly, once', async () => {
    const { jobId, video, audio } = await chunkedJob();
    for (const task of [...video, audio]) await finish(task);
    const assemble = await mustClaim();
    expect(await Promise.all([1, 2].map(() => replanVideo(db, assemble, whole)))).toEqual(
      expect.arrayContaining(['replanned', 'lost']),
    );
    expect(await openWork(jobId)).toEqual(['audio-0 done', 'video-0 queued']);
    await finish(await mustClaim());
    expect(await mustClaim()).toMatchObject({ kind: 'assemble' });
  });

  it('does nothing for an attempt that has lost its task, or a video that is gone', async () => {
    const { jobId, videoId, video } = await chunkedJob();
    await expireLease(video[0]);
    await reapExpiredLeases(db);
    expect(await replanVideo(db, video[0], whole)).toBe('lost');
    await db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' }));
    expect(await replanVideo(db, video[1], whole)).toBe('lost');
    expect(await openWork(jobId)).toHaveLength(3);
  });
});

describe('repair', () => {
  it('inserts a missing assemble task and corrects the count, and leaves sound jobs alone', async () => {
    const { jobId, tasks } = await plannedJob(await seedAccount(db));
    expect(await repairJobs(db)).toBe(0);
    await finish(tasks[0]);
    await db.query('update encode_jobs set remaining = 2 where id = $1', [jobId]);
    expect(await repairJobs(db)).toBe(1);
    await finish(tasks[1]);
    await db.query(`delete from encode_tasks where kind = 'assemble'`);
    expect(await repairJobs(db)).toBe(1);
    expect(await mustClaim()).toMatchObject({ kind: 'assemble', jobId });
    expect(await repairJobs(db)).toBe(0);
  });

  it('goes on behind jobs that cannot be corrected', async () => {
    const jobs: string[] = [];
    for (let count = 0; count < 3; count++) jobs.push((await plannedJob(await seedAccount(db))).jobId);
    const [poison = '', ...others] = jobs.sort();
    await db.query('update encode_jobs set remaining = 9');
    await db.query(
      `alter table encode_jobs add constraint poison check (id <> '${poison}' or remaining = 9)`,
    );
    try {
      await expect(repairJobs(db, { limit: 1 })).rejects.toMatchObject({ message: '1 were left' });
      expect(await column('select id as it from encode_jobs where remaining = 2 order by id')).toEqual(
        others,
      );
    } finally {
      await db.query('alter table encode_jobs drop constraint poison');
    }
  });

  it('publishes permits of tasks that wait long, once while a permit still waits', async () => {
    await queueVideo(await seedAccount(db));
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(0);
    await db.query('delete from outbox');
    expect(await republishQueued(db, { olderThanMs: 60_000, limit: 10 })).toBe(0);
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(1);
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(0);
  });
});
