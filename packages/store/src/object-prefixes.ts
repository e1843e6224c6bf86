import { randomSegment } from '@millrace/domain';
import { type Queryable, type Transaction } from './db.ts';
import { underLegalHold } from './legal-holds.ts';

/** A new random prefix for objects of a video; its row must exist before the first byte under it. */
export const newPrefix = (videoId: string): string => `videos/${videoId}/${randomSegment()}/`;

/** Names one attempt at a task: nobody else has this task under this fence. */
export interface Attempt {
  taskId: string;
  fence: number;
}

/**
 * The attempt's own random prefix; asking again gives the same one. Null when the attempt has lost its task or
 * the video is gone: then it may not write a byte.
 */
export async function openAttemptPrefix(db: Queryable, attempt: Attempt): Promise<string | null> {
  const { rows } = await db.query<{ videoId: string }>(
    `select t.video_id as "videoId" from encode_tasks t
     where t.id = $1 and t.fence = $2 and t.status = 'processing'`,
    [attempt.taskId, attempt.fence],
    'prefix-attempt-video',
  );
  const videoId = rows[0]?.videoId;
  if (videoId === undefined) return null;
  // The share lock orders this against a delete: either it sees this row and dooms it, or this sees the delete.
  const { rows: opened } = await db.query<{ prefix: string }>(
    `with alive as (select id from videos where id = $2 and deleted_at is null for share)
     insert into object_prefixes as p (prefix, video_id, kind, task_id, fence, created_at)
     select $1, alive.id, 'attempt', $3, $4, clock_timestamp() from alive
     on conflict (task_id, fence) do update set created_at = p.created_at where p.delete_after is null
     returning prefix`,
    [newPrefix(videoId), videoId, attempt.taskId, attempt.fence],
    'prefix-open-attempt',
  );
  return opened[0]?.prefix ?? null;
}

/**
 * Gives the objects up of an attempt that has stopped, and its lease, which one that was cancelled still has. Returns
 * its prefix when the objects may be deleted at once, null when there is none, when a legal hold keeps them, or when
 * the attempt turned out to have won (its finish was recorded though the answer was lost).
 */
export async function abandonAttempt(db: Queryable, attempt: Attempt): Promise<string | null> {
  await db.query(
    `update encode_tasks set lease_until = null
     where id = $1 and fence = $2 and status = 'cancelled' and lease_until is not null`,
    [attempt.taskId, attempt.fence],
    'task-stopped',
  );
  const { rows } = await db.query<{ prefix: string; kept: boolean }>(
    `update object_prefixes p set delete_after = coalesce(p.delete_after, clock_timestamp())
     where p.task_id = $1 and p.fence = $2
       and not exists (select from task_outputs o where o.task_id = $1 and o.fence = $2)
     returning prefix, ${underLegalHold('p.video_id')} as kept`,
    [attempt.taskId, attempt.fence],
    'prefix-abandon',
  );
  const [given] = rows;
  return given === undefined || given.kept ? null : given.prefix;
}

/** Marks every attempt of the video that the given job did not choose for the sweep. */
export async function doomLosers(tx: Transaction, videoId: string, jobId: string): Promise<void> {
  await tx.query(
    `update object_prefixes p set delete_after = clock_timestamp()
     where p.video_id = $1 and p.kind = 'attempt' and p.delete_after is null
       and not exists (select from task_outputs o join encode_tasks t on t.id = o.task_id
                       where t.job_id = $2 and o.prefix = p.prefix)`,
    [videoId, jobId],
    'prefix-doom-losers',
  );
}
