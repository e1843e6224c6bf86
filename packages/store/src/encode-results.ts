import { type Failure, type Quality } from '@millrace/contract';
import { type Database, type Transaction } from './db.ts';
import { type ClaimedTask } from './encode-claims.ts';
import { addToReport, endJob, endTask, insertOutput, isDone, type Report } from './encode-endings.ts';
import { assembleTask, insertTasks, lockRunningJob, type NewTask } from './encode-jobs.ts';
import { wantsTask } from './encode-wanted.ts';
import { doomLosers } from './object-prefixes.ts';
import { startPoster } from './poster-jobs.ts';
import { type ExceededLimit, lockUsage, type LockedUsage, reserveEncode } from './usage.ts';
import { moveVideo } from './video-moves.ts';
import { lockVideo } from './videos.ts';

/** `done` also when this very attempt's result had been recorded before: its answer may have been lost. */
export type FinishOutcome = 'done' | 'lost';

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
 * (contract LIM-103, LIM-105).
 */
export const finishPlan = (
  db: Database,
  task: ClaimedTask,
  plan: JobPlan,
): Promise<FinishOutcome | 'over_limit'> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, task.videoId);
    if (!wantsTask(video, task)) return (await isDone(tx, task)) ? 'done' : 'lost';
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

export interface FinishedEncode {
  prefix: string;
  indexKey: string;
  qualities: readonly Quality[];
  durationMs: number;
  /** The moment that its poster was made for (null: left to the encoder); absent when that is not known. */
  posterAtSeconds?: number | null | undefined;
  report: Report;
}

/**
 * Ends the assemble task, and with it the job: the record switches to the new encode, the video becomes
 * `ready` (or `held`), and the objects of every attempt that did not win are left to the sweep, all at once. A
 * poster that was wished for after the encode had made its own is a job from then on.
 */
export const finishJob = (db: Database, task: ClaimedTask, encode: FinishedEncode): Promise<FinishOutcome> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, task.videoId);
    const job = wantsTask(video, task) ? await lockRunningJob(tx, task.jobId) : null;
    if (!job || !(await endTask(tx, task))) return (await isDone(tx, task)) ? 'done' : 'lost';
    await insertOutput(tx, task, { prefix: encode.prefix, output: { indexKey: encode.indexKey } });
    await addToReport(tx, task.jobId, encode.report);
    await endJob(tx, task.jobId, 'succeeded');
    const { video: ready } = await moveVideo(
      tx,
      task.videoId,
      { type: 'encoding_finished' },
      {
        changes: { indexKey: encode.indexKey, qualities: encode.qualities, durationMs: encode.durationMs },
        headers: job.trace,
      },
    );
    await doomLosers(tx, task.videoId, task.jobId);
    const { posterAtSeconds = ready.posterAtSeconds } = encode;
    if (posterAtSeconds !== ready.posterAtSeconds) await startPoster(tx, ready, job.trace);
    return 'done';
  });

/** A plan that takes the place of another in the same job. */
export interface NewPlan {
  manifest: object;
  videoTasks: readonly NewTask[];
  /** What the report says no longer, by key. */
  forget: readonly string[];
  report: Report;
}

/**
 * Makes the video of a job anew under another plan; its sound and pictures stay. The job's video and assemble
 * tasks go, their attempts with them: who still works at one finds its lease lost, and what they wrote is left to
 * the sweep. The plan must ask for the same sound and pictures as the one before.
 *
 * @returns `lost` when the attempt no longer has its task
 */
export const replanVideo = (db: Database, task: ClaimedTask, plan: NewPlan): Promise<'replanned' | 'lost'> =>
  db.transaction(async (tx) => {
    await lockVideo(tx, task.videoId);
    const job = await lockRunningJob(tx, task.jobId);
    if (!job || !(await endTask(tx, task))) return 'lost';
    await removeVideoTasks(tx, task.jobId);
    await tx.query(
      `update encode_jobs set manifest = $2, report = report - $4::text[], remaining = $3 + (
         select count(*) from encode_tasks where job_id = $1 and kind in ('audio', 'images') and status <> 'done')
       where id = $1`,
      [task.jobId, JSON.stringify(plan.manifest), plan.videoTasks.length, plan.forget],
      'job-replan',
    );
    await addToReport(tx, task.jobId, plan.report);
    await insertTasks(tx, job, plan.videoTasks);
    return 'replanned';
  });

async function removeVideoTasks(tx: Transaction, jobId: string): Promise<void> {
  const videoTasks = `(select id from encode_tasks where job_id = $1 and kind in ('video', 'assemble'))`;
  await tx.query(
    `update object_prefixes set delete_after = coalesce(delete_after, clock_timestamp()), task_id = null, fence = null
     where task_id in ${videoTasks}`,
    [jobId],
    'job-doom-video',
  );
  await tx.query(`delete from task_outputs where task_id in ${videoTasks}`, [jobId], 'job-drop-outputs');
  await tx.query(`delete from encode_tasks where id in ${videoTasks}`, [jobId], 'job-drop-tasks');
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
