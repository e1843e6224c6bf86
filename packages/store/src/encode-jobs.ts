import { type Failure, type Quality } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { attemptOf, type ClaimedTask, permit, type TaskKind } from './encode-tasks.ts';
import { doomLosers } from './object-prefixes.ts';
import { addToOutbox } from './outbox.ts';
import { type ExceededLimit, lockUsage, type LockedUsage, reserveEncode } from './usage.ts';
import { moveVideo } from './video-moves.ts';
import { lockVideo } from './videos.ts';
import { limitingPlanId } from './plans.ts';

/**
 * Begins an encode of a video whose original is complete: a job, its first task (probe and plan) and a permit
 * for the encoders. The job becomes the video's current one; the move to `processing` is the caller's.
 *
 * @param headers trace context, for the job's messages from now on
 * @returns the job's id
 */
export async function createEncodeJob(
  tx: Transaction,
  {
    videoId,
    accountId,
    headers = {},
  }: { videoId: string; accountId: string; headers?: Record<string, string> },
): Promise<string> {
  const jobId = newId('job');
  await tx.query('update videos set current_job_id = $2 where id = $1', [videoId, jobId], 'job-make-current');
  await tx.query(
    `insert into encode_jobs (id, video_id, account_id, trace, created_at)
     values ($1, $2, $3, $4, clock_timestamp())`,
    [jobId, videoId, accountId, JSON.stringify(headers)],
    'job-create',
  );
  await insertTasks(tx, { id: jobId, videoId, accountId, trace: headers }, [
    { kind: 'plan', index: 0, cost: 1 },
  ]);
  return jobId;
}

interface JobIdentity {
  id: string;
  videoId: string;
  accountId: string;
  trace: Record<string, string>;
}

export interface NewTask {
  kind: TaskKind;
  index: number;
  /** Estimated CPU seconds. */
  cost: number;
}

async function insertTasks(tx: Transaction, job: JobIdentity, tasks: readonly NewTask[]): Promise<void> {
  const rows = tasks.map((task) => ({ ...task, id: newId('tsk') }));
  const { rows: inserted } = await tx.query<{ id: string; kind: TaskKind }>(
    `insert into encode_tasks (id, job_id, video_id, account_id, kind, index, cost, run_after, created_at)
     select id, $1, $2, $3, kind, index, cost, clock_timestamp(), clock_timestamp()
     from unnest($4::text[], $5::text[], $6::integer[], $7::real[]) as t (id, kind, index, cost)
     on conflict (job_id, kind, index) do nothing returning id, kind`,
    [
      job.id,
      job.videoId,
      job.accountId,
      rows.map((row) => row.id),
      rows.map((row) => row.kind),
      rows.map((row) => row.index),
      rows.map((row) => row.cost),
    ],
    'job-insert-tasks',
  );
  await addToOutbox(
    tx,
    inserted.map((task) => permit(task, 0, job.trace)),
  );
}

/** All that a worker needs to know of a task's job. */
export interface EncodeJob extends JobIdentity {
  /** Null until it is planned. */
  manifest: unknown;
  sourceKey: string | null;
  posterAtSeconds: number | null;
  /** Content type that an upload token bound the upload to. */
  boundContentType: string | null;
  maxQuality: Quality;
}

/** The job of a claimed task. */
export async function findEncodeJob(db: Queryable, jobId: string): Promise<EncodeJob | null> {
  const { rows } = await db.query<EncodeJob>(
    `select j.id, j.video_id as "videoId", j.account_id as "accountId", j.trace, j.manifest,
       v.source_key as "sourceKey", v.poster_at_seconds as "posterAtSeconds",
       u.bound_content_type as "boundContentType", p.max_quality as "maxQuality"
     from encode_jobs j
     join videos v on v.id = j.video_id
     join accounts a on a.id = j.account_id
     join plans p on p.id = ${limitingPlanId}
     left join uploads u on u.video_id = j.video_id
     where j.id = $1`,
    [jobId],
    'job-find',
  );
  return rows[0] ?? null;
}

/** What a task's winning attempt left behind. */
export interface StoredOutput {
  kind: TaskKind;
  index: number;
  prefix: string;
  output: unknown;
}

/** Outputs of a job's finished tasks, by kind and index. */
export async function findOutputs(db: Queryable, jobId: string): Promise<StoredOutput[]> {
  const { rows } = await db.query<StoredOutput>(
    `select t.kind, t.index, o.prefix, o.output from task_outputs o join encode_tasks t on t.id = o.task_id
     where t.job_id = $1 order by t.kind, t.index`,
    [jobId],
    'job-outputs',
  );
  return rows;
}

/** `done` also when this very attempt's result had been recorded before: its answer may have been lost. */
export type FinishOutcome = 'done' | 'lost';

/** What `report` adds to the job's ingest report, by key. */
type Report = Record<string, unknown>;

export interface JobPlan {
  manifest: object;
  plannerVersion: number;
  /** Measured length, for the limits. */
  durationMs: number;
  tasks: readonly NewTask[];
  report: Report;
}

/**
 * Ends a plan task: under the account's lock checks the limits against the measured length, charges it, and
 * inserts the job's tasks. Over a limit the video is `failed` with `plan_limit_reached` and its original goes
 * (contract, "Uploads"; decisions.md "Videos, holds, plans").
 */
export const finishPlan = (
  db: Database,
  task: ClaimedTask,
  plan: JobPlan,
): Promise<FinishOutcome | 'over_limit'> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, task.videoId);
    const unwanted =
      video?.status !== 'processing' || video.deletedAt !== null || video.currentJobId !== task.jobId;
    if (unwanted) return (await isDone(tx, task)) ? 'done' : 'lost';
    const usage = await lockUsage(tx, task.accountId);
    const job = await lockRunningJob(tx, task.jobId);
    if (!job || !(await endTask(tx, task))) return (await isDone(tx, task)) ? 'done' : 'lost';
    await addToReport(tx, task.jobId, plan.report);
    const exceeded = await reserveEncode(tx, usage, { videoId: task.videoId, durationMs: plan.durationMs });
    if (exceeded !== null) {
      await endJob(tx, task.jobId, 'failed');
      const failure = limitFailure(exceeded, usage, plan.durationMs);
      await moveVideo(tx, task.videoId, { type: 'encoding_failed', failure }, { headers: job.trace });
      return 'over_limit';
    }
    await tx.query(
      'update encode_jobs set manifest = $2, planner_version = $3, remaining = $4 where id = $1',
      [task.jobId, JSON.stringify(plan.manifest), plan.plannerVersion, plan.tasks.length],
      'job-plan',
    );
    await insertTasks(tx, job, plan.tasks);
    return 'done';
  });

/**
 * Ends a media task with its output, under the job's lock; the last one inserts the assemble task
 * (design.md, "The record and the transport" 8).
 */
export const finishTask = (
  db: Database,
  task: ClaimedTask,
  result: { prefix: string; output: object; report: Report },
): Promise<FinishOutcome> =>
  db.transaction(async (tx) => {
    const job = await lockRunningJob(tx, task.jobId);
    if (!job || !(await endTask(tx, task))) return (await isDone(tx, task)) ? 'done' : 'lost';
    await insertOutput(tx, task, result);
    await addToReport(tx, task.jobId, result.report);
    const { rows } = await tx.query<{ remaining: number }>(
      'update encode_jobs set remaining = remaining - 1 where id = $1 returning remaining',
      [task.jobId],
      'job-count-down',
    );
    if (rows[0]?.remaining === 0) await insertTasks(tx, job, [assembleTask]);
    return 'done';
  });

const assembleTask: NewTask = { kind: 'assemble', index: 0, cost: 1 };

export interface FinishedEncode {
  prefix: string;
  indexKey: string;
  qualities: readonly Quality[];
  durationMs: number;
  report: Report;
}

/**
 * Ends the assemble task, and with it the job: the record switches to the new encode, the video becomes
 * `ready` (or `held`), and the objects of every attempt that did not win are left to the sweep, all at once.
 */
export const finishJob = (db: Database, task: ClaimedTask, encode: FinishedEncode): Promise<FinishOutcome> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, task.videoId);
    const unwanted =
      video?.status !== 'processing' || video.deletedAt !== null || video.currentJobId !== task.jobId;
    const job = unwanted ? null : await lockRunningJob(tx, task.jobId);
    if (!job || !(await endTask(tx, task))) return (await isDone(tx, task)) ? 'done' : 'lost';
    await insertOutput(tx, task, { prefix: encode.prefix, output: { indexKey: encode.indexKey } });
    await addToReport(tx, task.jobId, encode.report);
    await endJob(tx, task.jobId, 'succeeded');
    await moveVideo(
      tx,
      task.videoId,
      { type: 'encoding_finished' },
      {
        changes: { indexKey: encode.indexKey, qualities: encode.qualities, durationMs: encode.durationMs },
        headers: job.trace,
      },
    );
    await doomLosers(tx, task.videoId, task.jobId);
    return 'done';
  });

/**
 * Puts running jobs right whose count of open tasks disagrees with their tasks, or whose assemble task is
 * missing. For the reconciler; a level-triggered repair of what cannot happen.
 * @returns how many were corrected
 */
export async function repairJobs(db: Database, limit = 100): Promise<number> {
  const { rows } = await db.query<{ id: string }>(
    `select j.id from encode_jobs j
     cross join lateral (
       select count(*) filter (where t.kind in ('video', 'audio', 'images') and t.status <> 'done') as open,
         count(*) filter (where t.kind = 'assemble') as assembles
       from encode_tasks t where t.job_id = j.id
     ) counted
     where j.state = 'running' and j.manifest is not null
       and (j.remaining <> counted.open or (counted.open = 0 and counted.assembles = 0))
     limit $1`,
    [limit],
    'job-crooked',
  );
  let repaired = 0;
  for (const { id } of rows) {
    repaired += await db.transaction(async (tx) => {
      const job = await lockRunningJob(tx, id);
      if (!job) return 0;
      const { rows: counted } = await tx.query<{ remaining: number; changed: boolean }>(
        `update encode_jobs j set remaining = c.open from (
           select count(*)::integer as open from encode_tasks t
           where t.job_id = $1 and t.kind in ('video', 'audio', 'images') and t.status <> 'done') c
         where j.id = $1 returning j.remaining`,
        [id],
        'job-recount',
      );
      if (counted[0]?.remaining === 0) await insertTasks(tx, job, [assembleTask]);
      return 1;
    });
  }
  return repaired;
}

async function lockRunningJob(tx: Transaction, jobId: string): Promise<JobIdentity | null> {
  const { rows } = await tx.query<JobIdentity>(
    `select id, video_id as "videoId", account_id as "accountId", trace from encode_jobs
     where id = $1 and state = 'running' for no key update`,
    [jobId],
    'job-lock',
  );
  return rows[0] ?? null;
}

/** Guarded by status, current job and fence; false when this attempt no longer has the task. */
async function endTask(tx: Transaction, task: ClaimedTask): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update encode_tasks t set status = 'done', lease_until = null, finished_at = clock_timestamp()
     where t.id = $1 and t.fence = $2 and t.status = 'processing'
       and exists (select from videos v where v.id = t.video_id and v.status = 'processing'
                     and v.deleted_at is null and v.current_job_id = t.job_id)`,
    [task.id, task.fence],
    'task-end',
  );
  return rowCount > 0;
}

async function isDone(tx: Transaction, task: ClaimedTask): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from encode_tasks where id = $1 and fence = $2 and status = 'done'`,
    [task.id, task.fence],
    'task-is-done',
  );
  return rowCount > 0;
}

async function insertOutput(
  tx: Transaction,
  task: ClaimedTask,
  { prefix, output }: { prefix: string; output: object },
): Promise<void> {
  const { taskId, fence } = attemptOf(task);
  await tx.query(
    `insert into task_outputs (task_id, fence, prefix, output, created_at)
     values ($1, $2, $3, $4, clock_timestamp())`,
    [taskId, fence, prefix, JSON.stringify(output)],
    'task-output',
  );
}

async function addToReport(tx: Transaction, jobId: string, report: Report): Promise<void> {
  await tx.query(
    'update encode_jobs set report = report || $2 where id = $1',
    [jobId, JSON.stringify(report)],
    'job-report',
  );
}

async function endJob(tx: Transaction, jobId: string, state: 'succeeded' | 'failed'): Promise<void> {
  await tx.query(
    'update encode_jobs set state = $2, finished_at = clock_timestamp() where id = $1',
    [jobId, state],
    'job-end',
  );
}

function limitFailure(exceeded: ExceededLimit, usage: LockedUsage, durationMs: number): Failure {
  const seconds = (ms: number): string => (ms / 1000).toFixed(0);
  const text = {
    source: `a video may be ${seconds(usage.maxSourceMs)} s long`,
    stored: `${seconds(usage.storedMs)} of ${seconds(usage.storedLimitMs ?? 0)} stored seconds are used`,
    upload: `${seconds(usage.uploadMs)} of ${seconds(usage.uploadLimitMs ?? 0)} upload seconds of this period are used`,
  }[exceeded];
  return {
    code: 'plan_limit_reached',
    message: `The video is ${seconds(durationMs)} s long, and on the plan ${usage.planName} ${text}. Its file was removed; free some room or choose a larger plan, then upload it again.`,
  };
}
