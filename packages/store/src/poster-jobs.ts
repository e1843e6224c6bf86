import { type VideoStatus } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Queryable, type Transaction } from './db.ts';
import { insertJob, insertTasks } from './encode-jobs.ts';
import { permit } from './encode-permits.ts';
import { chargePoster } from './encode-shares.ts';
import { addToOutbox } from './outbox.ts';

/** What a video's poster depends on. */
interface PosterWish {
  id: string;
  accountId: string;
  status: VideoStatus;
  posterAtSeconds: number | null;
  posterJobId: string | null;
}

/** Whether there is an encode to play, held back or not; then its poster is a job of its own (ADR 15). */
export const isPlayable = ({ status }: { status: VideoStatus }): boolean =>
  status === 'ready' || status === 'held';

/**
 * Has the poster made that a locked video now wishes for, if its encode will not make it and it is not the wish
 * that was there before; a wish that failed is tried again.
 *
 * @returns the id of the job that makes its poster, or made the one it has
 */
export async function renewPoster(
  tx: Transaction,
  before: PosterWish,
  wish: number | null,
): Promise<string | null> {
  if (!isPlayable(before)) return before.posterJobId;
  const same = wish === before.posterAtSeconds;
  if (same && !(await hasFailed(tx, before.posterJobId))) return before.posterJobId;
  return startPoster(tx, before);
}

/**
 * Has the poster of a locked video made anew. A job that has not begun takes the new wish; one that has is
 * cancelled: its worker learns of it with the next heartbeat, and nothing that it makes comes into use.
 *
 * @returns the id of the job
 */
export async function startPoster(
  tx: Transaction,
  { id: videoId, accountId, posterJobId }: PosterWish,
  trace: Record<string, string> = {},
): Promise<string> {
  if (posterJobId !== null && (await restartQueued(tx, posterJobId))) return posterJobId;
  await cancelPoster(tx, videoId, posterJobId);
  const job = { id: newId('job'), videoId, accountId, trace };
  await insertJob(tx, job, { isPoster: true });
  await insertTasks(tx, job, [{ kind: 'poster', index: 0, cost: 1 }]);
  await tx.query(
    'update videos set poster_job_id = $2 where id = $1',
    [videoId, job.id],
    'poster-make-current',
  );
  return job.id;
}

async function hasFailed(db: Queryable, jobId: string | null): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from encode_jobs where id = $1 and state = 'failed'`,
    [jobId],
    'poster-has-failed',
  );
  return rowCount > 0;
}

/** A task that waits for its next try is due at once, and has all its tries again. */
async function restartQueued(tx: Transaction, jobId: string): Promise<boolean> {
  const { rows } = await tx.query<{ id: string; fence: number; trace: Record<string, string> }>(
    `update encode_tasks t set class = 'standard', failures = 0, losses = 0, last_error = null,
       run_after = least(run_after, clock_timestamp())
     from encode_jobs j where t.job_id = $1 and t.status = 'queued' and j.id = t.job_id
     returning t.id, t.fence, j.trace`,
    [jobId],
    'poster-restart',
  );
  const task = rows[0];
  if (task === undefined) return false;
  await addToOutbox(tx, [permit({ id: task.id, kind: 'poster' }, task.fence, task.trace)]);
  return true;
}

/**
 * The job's lock comes before its task's, as everywhere. The task keeps its lease: until its worker has stopped or the
 * lease runs out, no other poster of the account is made. Else changing the moment again and again would take slot
 * after slot.
 */
async function cancelPoster(tx: Transaction, videoId: string, jobId: string | null): Promise<void> {
  if (jobId === null) return;
  await tx.query(
    `update encode_jobs set state = 'cancelled', finished_at = clock_timestamp()
     where id = $1 and state = 'running'`,
    [jobId],
    'poster-cancel-job',
  );
  const { rowCount } = await tx.query(
    `update encode_tasks set status = 'cancelled', finished_at = clock_timestamp()
     where job_id = $1 and status in ('queued', 'processing')`,
    [jobId],
    'poster-cancel-task',
  );
  if (rowCount > 0) await chargePoster(tx, jobId);
  await doomPosterLosers(tx, videoId);
}

/** Marks every attempt at a poster of the video that came to nothing for the sweep. */
export async function doomPosterLosers(tx: Transaction, videoId: string): Promise<void> {
  await tx.query(
    `update object_prefixes p set delete_after = clock_timestamp() from encode_tasks t
     where p.video_id = $1 and p.delete_after is null and t.id = p.task_id and t.kind = 'poster'
       and not exists (select from task_outputs o where o.prefix = p.prefix)`,
    [videoId],
    'poster-doom-losers',
  );
}
