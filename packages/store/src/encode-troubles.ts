import { type Failure } from '@millrace/contract';
import { decideTrouble, type TaskTries, type TaskTrouble } from '@millrace/domain';
import { type Database, type Transaction } from './db.ts';
import { eachOfPages } from './each.ts';
import { permit, type TaskKind } from './encode-permits.ts';
import { chargePoster } from './encode-shares.ts';
import { wantsTask } from './encode-wanted.ts';
import { type Attempt } from './object-prefixes.ts';
import { addToOutbox } from './outbox.ts';
import { doomPosterLosers } from './poster-jobs.ts';
import { moveVideo } from './video-moves.ts';
import { lockVideo } from './videos.ts';

/** What `failTask` made of an attempt's trouble. */
export type TroubleOutcome =
  /** Queued again, due after this long. */
  | { kind: 'retry'; afterMs: number }
  /** The video is `failed`; or its new poster is, and the old one stays. */
  | { kind: 'failed' }
  /** The attempt had lost its task, or the video is gone; nothing changed. */
  | { kind: 'lost' };

/** Records why an attempt ended without a result, and retries or fails the video as `decideTrouble` says. */
export const failTask = (db: Database, attempt: Attempt, trouble: TaskTrouble): Promise<TroubleOutcome> =>
  db.transaction((tx) => recordTrouble(tx, attempt, trouble, { expired: false })).catch(lostIfMeanwhile);

interface TroubledRow extends TaskTries {
  id: string;
  jobId: string;
  videoId: string;
  kind: TaskKind;
  trace: Record<string, string>;
}

/** `expired`: only if its lease has run out meanwhile (the reaper must not shoot a worker that came back). */
async function recordTrouble(
  tx: Transaction,
  { taskId, fence }: Attempt,
  trouble: TaskTrouble,
  { expired }: { expired: boolean },
): Promise<TroubleOutcome> {
  const { rows } = await tx.query<TroubledRow>(
    `select t.id, t.job_id as "jobId", t.video_id as "videoId", t.kind, t.class, t.failures, t.losses,
       coalesce((t.last_error->>'waits')::integer, 0) as waits,
       coalesce(extract(epoch from clock_timestamp() - (t.last_error->>'waitingSince')::timestamptz) * 1000, 0)::float8
         as "waitedMs",
       j.trace
     from encode_tasks t join encode_jobs j on j.id = t.job_id
     where t.id = $1 and t.fence = $2 and t.status = 'processing'
       and (not $3 or t.lease_until < clock_timestamp())`,
    [taskId, fence, expired],
    'task-trouble-read',
  );
  const task = rows[0];
  if (!task) return { kind: 'lost' };
  const { tries, ...decision } = decideTrouble(task, trouble);
  if (decision.kind === 'fail') {
    // The video's lock comes before the task's; the state is looked at again under both.
    const video = await lockVideo(tx, task.videoId);
    if (!wantsTask(video, task)) return { kind: 'lost' };
    await tx.query(
      `update encode_jobs set state = 'failed', finished_at = clock_timestamp(), report = report || $2
       where id = $1 and state = 'running'`,
      [
        task.jobId,
        JSON.stringify({ failure: { ...failureOf(task, trouble, decision.failure), task: task.kind } }),
      ],
      'job-fail',
    );
  }
  const { rowCount } = await tx.query(
    `update encode_tasks set status = $4, class = $5, failures = $6, losses = $7, worker = null,
       lease_until = null,
       last_error = $8::jsonb || case when $10 then jsonb_build_object(
         'waitingSince', coalesce(last_error->'waitingSince', to_jsonb(clock_timestamp()))) else '{}' end,
       run_after = clock_timestamp() + $9 * interval '1 millisecond',
       finished_at = case when $4 = 'failed' then clock_timestamp() end
     where id = $1 and fence = $2 and status = 'processing' and (not $3 or lease_until < clock_timestamp())`,
    [
      taskId,
      fence,
      expired,
      decision.kind === 'fail' ? 'failed' : 'queued',
      tries.class,
      tries.failures,
      tries.losses,
      JSON.stringify({ kind: trouble.kind, message: trouble.message.slice(0, 2_000), waits: tries.waits }),
      decision.kind === 'fail' ? 0 : decision.afterMs,
      tries.waits > 0,
    ],
    'task-trouble-write',
  );
  if (rowCount === 0) throw new LostMeanwhile();
  if (task.kind === 'poster') await chargePoster(tx, task.jobId);
  if (decision.kind === 'fail') {
    if (task.kind === 'poster') await doomPosterLosers(tx, task.videoId);
    else {
      const { failure } = decision;
      await moveVideo(tx, task.videoId, { type: 'encoding_failed', failure }, { headers: task.trace });
    }
    return { kind: 'failed' };
  }
  if (decision.afterMs === 0) await addToOutbox(tx, [permit(task, fence, task.trace)]);
  return { kind: 'retry', afterMs: decision.afterMs };
}

/** A video whose poster cannot be made plays on, with the one that it has. */
const failureOf = ({ kind }: TroubledRow, trouble: TaskTrouble, failure: Failure): Failure =>
  kind === 'poster' && trouble.kind !== 'source'
    ? {
        code: 'encoding_failed',
        message: 'The poster could not be made, and stays as it was. Choose it again.',
      }
    : failure;

/** Rolls a transaction back whose task changed hands between its read and its write. */
class LostMeanwhile extends Error {
  override readonly name = 'LostMeanwhile';
}
const lostIfMeanwhile = (error: unknown): TroubleOutcome => {
  if (error instanceof LostMeanwhile) return { kind: 'lost' };
  throw error;
};

/**
 * Takes tasks from workers that stopped renewing their lease, as losses. For the reconciler.
 * @param options.limit how many are looked up by one statement
 * @returns how many were taken
 * @throws AggregateError when some could not be, after all the rest
 */
export function reapExpiredLeases(
  db: Database,
  { signal, limit = 100 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const page = async (after: string): Promise<{ id: string; fence: number }[]> => {
    const { rows } = await db.query<{ id: string; fence: number }>(
      `select id, fence from encode_tasks
       where status = 'processing' and lease_until < clock_timestamp() and id > $2 order by id limit $1`,
      [limit, after],
      'task-expired',
    );
    return rows;
  };
  const trouble: TaskTrouble = { kind: 'lost', message: 'the lease expired: its worker was lost' };
  const reap = async ({ id: taskId, fence }: { id: string; fence: number }): Promise<number> => {
    const outcome = await db
      .transaction((tx) => recordTrouble(tx, { taskId, fence }, trouble, { expired: true }))
      .catch(lostIfMeanwhile);
    return outcome.kind === 'lost' ? 0 : 1;
  };
  return eachOfPages(page, reap, { signal });
}
