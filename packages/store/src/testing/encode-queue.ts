import { beforeEach, expect } from '@jest/globals';
import { type TaskClass } from '@millrace/domain';
import { type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import {
  type ClaimedTask,
  claimTask,
  createEncodeJob,
  type Database,
  finishJob,
  finishPlan,
  finishTask,
} from '../index.ts';
import { db, one, useDatabase } from './database.ts';

export { column, db, one } from './database.ts';

/** Gives a suite a record of its own, with nothing to encode at the beginning of each test. */
export function useEncodeQueue(): void {
  useDatabase();
  beforeEach(async () => {
    await db.query(
      `truncate task_outputs, encode_tasks, encode_jobs, encode_shares, encode_pauses, object_prefixes, outbox, events,
         audit, usage, usage_reservations, video_holds, videos, projects, accounts cascade`,
    );
  });
}

export const claim = (taskClass: TaskClass = 'standard', store: Database = db): Promise<ClaimedTask | null> =>
  claimTask(store, { worker: 'w', class: taskClass, leaseMs: 60_000 });

/**
 * Queues all tasks anew and lets six encoders of each class claim at once. Which tasks have come down to the encoders with
 * more memory differs from round to round.
 * @returns what they were given
 */
export async function claimAtOnce(round: number): Promise<ClaimedTask[]> {
  await db.query(
    `update encode_tasks set status = 'queued', lease_until = null,
       class = case when (right(id, 1)::int + $1) % 3 = 0 then 'large' else 'standard' end`,
    [round],
  );
  const claims = await Promise.all(
    Array.from({ length: 12 }, (_, i) => claim(i % 2 === 0 ? 'large' : 'standard')),
  );
  return claims.filter((task) => task !== null);
}

export async function mustClaim(): Promise<ClaimedTask> {
  const task = await claim();
  if (task === null) throw new Error('nothing to claim');
  return task;
}

export const expireLease = (task: ClaimedTask): Promise<unknown> =>
  db.query(`update encode_tasks set lease_until = now() - interval '1 s' where id = $1`, [task.id]);

/** A video whose encode waits for its plan. */
export async function queueVideo(account: SeededAccount): Promise<{ videoId: string; jobId: string }> {
  const videoId = await seedProcessingVideo(db, account);
  const { accountId } = account;
  const jobId = await db.transaction((tx) =>
    createEncodeJob(tx, { videoId, accountId, headers: { traceparent: '00-a' } }),
  );
  return { videoId, jobId };
}

/** An import, as `queueVideo` would write it one by one: its ids are older than those of any other job. */
export async function queueImport({ accountId, projectId }: SeededAccount, count: number): Promise<void> {
  await db.query(
    `with numbers as (
       select $1 || '_' || lpad(n::text, 6, '0') as n from generate_series(1, $3::int) as n
     ), made as (
       insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, current_job_id, created_at, updated_at)
       select 'vid_' || n, $2, $1, 'Import', 'processing', 1000, 'k', 'job_' || n, now(), now() from numbers
     ), jobs as (
       insert into encode_jobs (id, video_id, account_id, created_at)
       select 'job_' || n, 'vid_' || n, $1, clock_timestamp() from numbers
     )
     insert into encode_tasks (id, job_id, video_id, account_id, kind, run_after, created_at)
     select 'tsk_' || n, 'job_' || n, 'vid_' || n, $1, 'plan', clock_timestamp(), now() from numbers`,
    [accountId, projectId, count],
  );
}

export const somePlan = (durationMs = 60_000) => ({
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
export async function plannedJob(account: SeededAccount) {
  const job = await queueVideo(account);
  expect(await finishPlan(db, await mustClaim(), somePlan())).toBe('done');
  const tasks = [await mustClaim(), await mustClaim()] as const;
  return { ...job, tasks };
}

export const finish = (task: ClaimedTask, prefix = `p/${task.id}/${task.fence}/`) =>
  finishTask(db, task, { prefix, output: { bytes: 1 }, report: {} });

/** Ends a claimed task of an encode as an encoder does. @param videoCost CPU seconds of the video task that a plan makes */
export async function end(task: ClaimedTask, videoCost: number): Promise<void> {
  const prefix = `p/${task.id}/${task.fence}/`;
  const durationMs = 1_000;
  if (task.kind === 'plan') {
    const tasks = (['video', 'audio', 'images'] as const).map((kind) => ({
      ...{ kind, index: 0 },
      cost: kind === 'video' ? videoCost : 2,
    }));
    const plan = { manifest: { v: 1 }, plannerVersion: 1, durationMs, tasks, report: {} };
    expect(await finishPlan(db, task, plan)).toBe('done');
  } else if (task.kind === 'assemble') {
    const encode = { prefix, indexKey: `${prefix}index.json`, qualities: ['360p'] as const, durationMs };
    expect(await finishJob(db, task, { ...encode, report: {} })).toBe('done');
  } else expect(await finishTask(db, task, { prefix, output: {}, report: {} })).toBe('done');
}

export const videoOf = (videoId: string): Promise<{ status: string; failureCode: string | null }> =>
  one('select status, failure_code as "failureCode" from videos where id = $1', [videoId]);
