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
  type Database,
  failTask,
  finishJob,
  finishPlan,
  finishTask,
  heartbeatTask,
  moveVideo,
  openAttemptPrefix,
  reapExpiredLeases,
  releaseTask,
  repairJobs,
  replanVideo,
  republishQueued,
} from './index.ts';

let testDatabase: TestDatabase;
let db: Database;

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
    `truncate task_outputs, encode_tasks, encode_jobs, encode_shares, object_prefixes, outbox, events,
       usage, usage_reservations, videos, projects, accounts cascade`,
  );
});

const claim = (worker = 'w1', leaseMs = 60_000): Promise<ClaimedTask | null> =>
  claimTask(db, { worker, class: 'standard', leaseMs });

async function mustClaim(): Promise<ClaimedTask> {
  const task = await claim();
  if (task === null) throw new Error('nothing to claim');
  return task;
}

async function queueJob(account: SeededAccount): Promise<{ videoId: string; jobId: string }> {
  const videoId = await seedProcessingVideo(db, account);
  const jobId = await db.transaction((tx) =>
    createEncodeJob(tx, { videoId, accountId: account.accountId, headers: { traceparent: '00-a' } }),
  );
  return { videoId, jobId };
}

const somePlan = (durationMs = 60_000) => ({
  manifest: { v: 1 },
  plannerVersion: 1,
  durationMs,
  tasks: [
    { kind: 'video' as const, index: 0, cost: 50 },
    { kind: 'audio' as const, index: 0, cost: 2 },
  ],
  report: { planned: true },
});

/** A job whose plan is done, with its video and audio tasks claimed. */
async function plannedJob(account: SeededAccount) {
  const job = await queueJob(account);
  expect(await finishPlan(db, await mustClaim(), somePlan())).toBe('done');
  const tasks = [await mustClaim(), await mustClaim()] as const;
  return { ...job, tasks };
}

const finish = (task: ClaimedTask, prefix = `p/${task.id}/${task.fence}/`) =>
  finishTask(db, task, { prefix, output: { bytes: 1 }, report: {} });

async function one<Row>(sql: string, values: unknown[] = []): Promise<Row> {
  const { rows } = await db.query<Row>(sql, values);
  const row = rows[0];
  if (row === undefined) throw new Error(`no row: ${sql}`);
  return row;
}
const videoOf = (videoId: string) =>
  one<{ status: string; failureCode: string | null }>(
    'select status, failure_code as "failureCode" from videos where id = $1',
    [videoId],
  );
const expireLease = (task: ClaimedTask) =>
  db.query(`update encode_tasks set lease_until = now() - interval '1 s' where id = $1`, [task.id]);

describe('createEncodeJob', () => {
  it('makes a job with one plan task and a permit that carries the trace', async () => {
    const { jobId, videoId } = await queueJob(await seedAccount(db));
    const permit = await one<{ key: string; value: { taskId: string; kind: string }; headers: object }>(
      `select key, value, headers from outbox where topic = 'millrace.encode.tasks'`,
    );
    const task = await mustClaim();
    expect(task).toMatchObject({ kind: 'plan', jobId, videoId, fence: 1 });
    expect(permit).toEqual({
      key: task.id,
      value: { v: 1, taskId: task.id, kind: 'plan' },
      headers: { traceparent: '00-a' },
    });
    expect(await claim()).toBeNull();
  });
});

describe('claimTask', () => {
  it('gives each task to one worker only, however many claim at once', async () => {
    const account = await seedAccount(db);
    for (let i = 0; i < 20; i++) await queueJob(account);
    const claims = await Promise.all(Array.from({ length: 40 }, (_, i) => claim(`w${i}`)));
    const ids = claims.flatMap((task) => (task === null ? [] : [task.id]));
    expect(ids.length).toBe(20);
    expect(new Set(ids).size).toBe(20);
  });

  it('never runs more jobs of an account at once than its plan allows, though its running jobs go on [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    for (let i = 0; i < 5; i++) await queueJob(account);
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim()));
    const running = claims.filter((task) => task !== null);
    expect(running.length).toBe(2);

    // A job that is running already may use more slots.
    await finishPlan(db, running[0] as ClaimedTask, somePlan());
    const more = [await mustClaim(), await mustClaim()];
    expect(more.map((task) => [task.jobId, task.kind])).toEqual([
      [running[0]?.jobId, 'video'],
      [running[0]?.jobId, 'audio'],
    ]);
    expect(await claim()).toBeNull();
  });

  it('finishes jobs that were begun before it begins later ones of the same account', async () => {
    const account = await seedAccount(db);
    const first = await queueJob(account);
    await queueJob(account);
    await finishPlan(db, await mustClaim(), somePlan());
    expect((await mustClaim()).jobId).toBe(first.jobId);
    expect((await mustClaim()).jobId).toBe(first.jobId);
  });

  it('lets an account with one video go before an import of another, with a single slot too', async () => {
    const importer = await seedAccount(db);
    const single = await seedAccount(db);
    for (let i = 0; i < 100; i++) await queueJob(importer);
    const running = await mustClaim();
    const { jobId } = await queueJob(single);

    // One slot: each task ends before the next claim. The importer has a task between at most once.
    let others = 0;
    let task = running;
    const seen: string[] = [];
    while (!seen.includes('assemble')) {
      if (task.kind === 'plan') await finishPlan(db, task, somePlan());
      else if (task.kind !== 'assemble') await finish(task);
      task = await mustClaim();
      if (task.jobId === jobId) seen.push(task.kind);
      else others += 1;
    }
    expect(seen).toEqual(['plan', 'video', 'audio', 'assemble']);
    expect(others).toBeLessThanOrEqual(1);
  });

  it('puts a higher priority before everything else', async () => {
    const account = await seedAccount(db);
    await queueJob(account);
    const urgent = await queueJob(account);
    await db.query('update encode_tasks set priority = 10 where job_id = $1', [urgent.jobId]);
    expect((await mustClaim()).jobId).toBe(urgent.jobId);
  });

  it('leaves tasks that are not due, of another class, or locked by another transaction', async () => {
    const account = await seedAccount(db);
    const waiting = await queueJob(account);
    const large = await queueJob(account);
    const locked = await queueJob(await seedAccount(db));
    const free = await queueJob(await seedAccount(db));
    await db.query(`update encode_tasks set run_after = now() + interval '1 h' where job_id = $1`, [
      waiting.jobId,
    ]);
    await db.query(`update encode_tasks set class = 'large' where job_id = $1`, [large.jobId]);
    await db.transaction(async (tx) => {
      await tx.query('select from encode_tasks where job_id = $1 for update', [locked.jobId]);
      expect((await mustClaim()).jobId).toBe(free.jobId);
      expect(await claim()).toBeNull();
    });
    expect((await claimTask(db, { worker: 'big', class: 'large', leaseMs: 1000 }))?.jobId).toBe(large.jobId);
  });
});

describe('leases and fences', () => {
  it('refuses heartbeat, finish and failure of a holder whose task was claimed again', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const old = tasks[0];
    expect(await heartbeatTask(db, attemptOf(old), 60_000)).toBe('ok');
    await expireLease(old);
    expect(await reapExpiredLeases(db)).toBe(1);
    const fresh = await mustClaim();
    expect(fresh).toMatchObject({ id: old.id, fence: old.fence + 1, losses: 1, failures: 0 });

    expect(await heartbeatTask(db, attemptOf(old), 60_000)).toBe('lost');
    expect(await finish(old)).toBe('lost');
    expect(await failTask(db, attemptOf(old), { kind: 'encoding', message: 'late' })).toEqual({
      kind: 'lost',
    });
    expect(await openAttemptPrefix(db, attemptOf(old))).toBeNull();
    expect(await finish(fresh)).toBe('done');
    expect(await one('select fence from task_outputs where task_id = $1', [old.id])).toEqual({
      fence: fresh.fence,
    });
  });

  it('does not take a task whose worker renewed its lease', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    await expireLease(tasks[0]);
    await heartbeatTask(db, attemptOf(tasks[0]), 60_000);
    expect(await reapExpiredLeases(db)).toBe(0);
    expect(await finish(tasks[0])).toBe('done');
  });

  it('answers a repeated finish of the winner with done, and keeps its objects', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const prefix = await openAttemptPrefix(db, attemptOf(tasks[0]));
    expect(await finish(tasks[0], prefix ?? '')).toBe('done');
    expect(await finish(tasks[0], prefix ?? '')).toBe('done');
    expect(await one('select remaining from encode_jobs')).toEqual({ remaining: 1 });
    expect(await abandonAttempt(db, attemptOf(tasks[0]))).toBeNull();
  });

  it('hands a released task to the next worker without counting a loss', async () => {
    await queueJob(await seedAccount(db));
    const task = await mustClaim();
    await releaseTask(db, task);
    expect(await mustClaim()).toMatchObject({ id: task.id, fence: task.fence + 1, losses: 0, failures: 0 });
  });

  it('moves a task to the large class after three losses and fails the video after three more [ENC-018]', async () => {
    const { videoId } = await queueJob(await seedAccount(db));
    const classes: string[] = [];
    for (;;) {
      const task = (await claim()) ?? (await claimTask(db, { worker: 'w', class: 'large', leaseMs: 1000 }));
      if (task === null) break;
      classes.push(task.class);
      await expireLease(task);
      await reapExpiredLeases(db);
    }
    expect(classes).toEqual(['standard', 'standard', 'standard', 'large', 'large', 'large']);
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
  });
});

describe('failTask', () => {
  it('fails the video at once for bad input, with its code, one event and no open work [VID-105]', async () => {
    const { videoId, tasks } = await plannedJob(await seedAccount(db));
    const failure = { code: 'unsupported_codec', message: 'No decoder.' } as const;
    expect(
      await failTask(db, attemptOf(tasks[0]), { kind: 'source', failure, message: 'no decoder' }),
    ).toEqual({ kind: 'failed' });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'unsupported_codec' });
    expect(await one('select count(*) from events')).toEqual({ count: 1 });
    expect(await heartbeatTask(db, attemptOf(tasks[1]), 60_000)).toBe('cancelled');
    expect(await one(`select state, report from encode_jobs`)).toEqual({
      state: 'failed',
      report: { planned: true, failure: { ...failure, task: 'video' } },
    });
    expect(await one(`select headers from outbox where topic = 'millrace.video.events'`)).toEqual({
      headers: { traceparent: '00-a' },
    });
    expect(await claim()).toBeNull();
  });

  it('retries what ffmpeg did with a wait, and gives upload seconds back when it gives up [LIM-105, ENC-018]', async () => {
    const account = await seedAccount(db);
    const { videoId, tasks } = await plannedJob(account);
    const usage = () =>
      one<object>('select stored_ms as stored, upload_ms as upload from usage where account_id = $1', [
        account.accountId,
      ]);
    expect(await usage()).toEqual({ stored: 60_000, upload: 60_000 });
    let task = tasks[0];
    for (const afterMs of [5_000, 30_000]) {
      const outcome = await failTask(db, attemptOf(task), { kind: 'encoding', message: 'SIGSEGV' });
      expect(outcome).toEqual({ kind: 'retry', afterMs });
      expect(await claim()).toBeNull();
      await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
      task = await mustClaim();
    }
    expect(await failTask(db, attemptOf(task), { kind: 'encoding', message: 'SIGSEGV' })).toEqual({
      kind: 'failed',
    });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
    expect(await usage()).toEqual({ stored: 0, upload: 0 });
  });

  it('gives up an outage of ours after a day, gives upload seconds back, and never before [ENC-018]', async () => {
    const account = await seedAccount(db);
    const { videoId, tasks } = await plannedJob(account);
    const outage = { kind: 'infrastructure', message: 'no store' } as const;
    const due = async (seconds: number): Promise<ClaimedTask> => {
      await db.query(
        `update encode_tasks set run_after = now(),
           last_error = jsonb_set(last_error, '{waitingSince}', to_jsonb(now() - $2 * interval '1 s'))
         where id = $1`,
        [tasks[0].id, seconds],
      );
      return mustClaim();
    };
    let task = tasks[0];
    for (let tries = 0; tries < 20; tries++) {
      expect(await failTask(db, attemptOf(task), outage)).toMatchObject({ kind: 'retry' });
      task = await due(24 * 3_600 - 60);
    }
    // The outage's beginning stays what it was.
    const { rows } = await db.query<{ hours: number }>(
      `select round(extract(epoch from now() - (last_error->>'waitingSince')::timestamptz) / 3600)::integer as hours
       from encode_tasks where id = $1`,
      [task.id],
    );
    expect(rows).toEqual([{ hours: 24 }]);
    expect(await failTask(db, attemptOf(task), outage)).toMatchObject({ kind: 'retry' });
    task = await due(24 * 3_600);
    expect(await failTask(db, attemptOf(task), outage)).toEqual({ kind: 'failed' });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 0,
      upload: 0,
    });
  });

  it('counts an outage anew when the task met something else between', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const trouble = async (kind: 'infrastructure' | 'room', task: ClaimedTask): Promise<ClaimedTask> => {
      await failTask(db, attemptOf(task), { kind, message: '' });
      await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
      return mustClaim();
    };
    const since = () =>
      one<{ waits: number; since: string | null }>(
        `select (last_error->>'waits')::integer as waits, last_error->>'waitingSince' as since
         from encode_tasks where id = $1`,
        [tasks[0].id],
      );
    let task = await trouble('infrastructure', tasks[0]);
    const first = await since();
    task = await trouble('infrastructure', task);
    expect(await since()).toEqual({ waits: 2, since: first.since });
    task = await trouble('room', task);
    expect(await since()).toEqual({ waits: 0, since: null });
    await trouble('infrastructure', task);
    expect((await since()).since).not.toBe(first.since);
  });

  it('charges upload seconds for a file that is to blame, and does not count our own outages [LIM-105]', async () => {
    const account = await seedAccount(db);
    const { tasks } = await plannedJob(account);
    const task = tasks[0];
    await failTask(db, attemptOf(task), { kind: 'infrastructure', message: 'no store' });
    await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
    const again = await mustClaim();
    expect(again).toMatchObject({ id: task.id, failures: 0, losses: 0 });
    expect(await failTask(db, attemptOf(again), { kind: 'infrastructure', message: 'still' })).toEqual({
      kind: 'retry',
      afterMs: 2_000,
    });
    const failure = { code: 'invalid_file', message: 'Corrupt.' } as const;
    await failTask(db, attemptOf(tasks[1]), { kind: 'source', failure, message: 'corrupt' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 0,
      upload: 60_000,
    });
  });
});

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

describe('finishPlan', () => {
  it('fails a video that does not fit the upload limit, removes its original and charges nothing [VID-106, LIM-103]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    const first = await queueJob(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    const second = await queueJob(account);
    // The first job's two tasks, then the second's plan.
    await mustClaim();
    await mustClaim();
    expect(await finishPlan(db, await mustClaim(), somePlan(3_600_001))).toBe('over_limit');
    expect(await videoOf(second.videoId)).toEqual({ status: 'failed', failureCode: 'plan_limit_reached' });
    expect(await videoOf(first.videoId)).toMatchObject({ status: 'processing' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 14_400_000,
      upload: 14_400_000,
    });
    const { rows } = await db.query<{ videoId: string }>(
      `select video_id as "videoId" from object_prefixes where kind = 'source' and delete_after is not null`,
    );
    expect(rows).toEqual([{ videoId: second.videoId }]);
  });

  it('accepts exactly what is left of a limit [LIM-103]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueJob(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    await queueJob(account);
    await mustClaim();
    await mustClaim();
    expect(await finishPlan(db, await mustClaim(), somePlan(3_600_000))).toBe('done');
  });

  it('accepts a source as long as the plan takes, and none that is longer [LIM-102, VID-013]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueJob(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    const other = await seedAccount(db, { planId: 'free' });
    const { videoId } = await queueJob(other);
    const task = await mustClaim();
    expect(task.accountId).toBe(other.accountId);
    expect(await finishPlan(db, task, somePlan(14_400_001))).toBe('over_limit');
    const { message } = await one<{ message: string }>(
      'select failure_message as message from videos where id = $1',
      [videoId],
    );
    expect(message).toMatch(/may be 14400 s long.+upload it again\.$/);
  });

  it('lets only as many of an account through at once as fit [LIM-104]', async () => {
    const account = await seedAccount(db, { planId: 'starter' });
    for (let i = 0; i < 4; i++) await queueJob(account);
    const tasks = [await mustClaim(), await mustClaim(), await mustClaim(), await mustClaim()];
    await db.query(
      `insert into usage (account_id, period_start, period_end, upload_ms, updated_at)
       values ($1, date_trunc('month', now()), date_trunc('month', now()) + interval '1 month', 179800000, now())`,
      [account.accountId],
    );
    const outcomes = await Promise.all(tasks.map((task) => finishPlan(db, task, somePlan(60_000))));
    expect(outcomes.sort()).toEqual(['done', 'done', 'done', 'over_limit']);
    expect(await one('select upload_ms as upload from usage')).toEqual({ upload: 179_980_000 });
  });

  it('begins a new period by itself and does not charge an encode of the team again', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await db.query(
      `insert into usage (account_id, period_start, period_end, upload_ms, watched_ms, stored_ms, updated_at)
       values ($1, '2020-01-01', '2020-02-01', 18000000, 5, 7, now())`,
      [account.accountId],
    );
    const { videoId } = await queueJob(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(1_000))).toBe('done');
    const usage = () =>
      one(
        'select upload_ms as upload, watched_ms as watched, stored_ms as stored, period_end > now() as current from usage',
      );
    expect(await usage()).toEqual({ upload: 1_000, watched: 0, stored: 1_007, current: true });

    const failure = { code: 'unsupported_codec', message: 'No decoder.' } as const;
    await failTask(db, attemptOf(await mustClaim()), { kind: 'source', failure, message: '' });
    // Charged again, it would not fit.
    await db.query('update usage set upload_ms = 18000000');
    await db.transaction(async (tx) => {
      await moveVideo(tx, videoId, { type: 'team_retry' });
      await createEncodeJob(tx, { videoId, accountId: account.accountId });
    });
    expect(await finishPlan(db, await mustClaim(), somePlan(1_000))).toBe('done');
    expect(await usage()).toEqual({ upload: 18_000_000, watched: 0, stored: 1_007, current: true });
  });

  it('answers done to a repeated finish and plans only once', async () => {
    await queueJob(await seedAccount(db));
    const task = await mustClaim();
    expect(await finishPlan(db, task, somePlan())).toBe('done');
    expect(await finishPlan(db, task, somePlan())).toBe('done');
    expect(await one('select upload_ms as upload from usage')).toEqual({ upload: 60_000 });
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
    const job = await queueJob(await seedAccount(db));
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

  it('publishes permits of tasks that wait long, once while a permit still waits', async () => {
    await queueJob(await seedAccount(db));
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(0);
    await db.query('delete from outbox');
    expect(await republishQueued(db, { olderThanMs: 60_000, limit: 10 })).toBe(0);
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(1);
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(0);
  });
});
