import { newId } from '@millrace/domain';
import { type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  findEncodeJob,
  finishPoster,
  lockVideo,
  moveVideo,
  openAttemptPrefix,
  patchVideo,
} from '../index.ts';
import { db } from './encode-queue.ts';

/** A video that plays, as if it had been encoded. */
export async function seedReadyVideo(account: SeededAccount): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  const changes = { indexKey: 'first/index.json', durationMs: 60_000 };
  await db.transaction((tx) => moveVideo(tx, videoId, { type: 'encoding_finished' }, { changes }));
  return videoId;
}

/** What PATCH does. */
export const wish = (videoId: string, posterAtSeconds: number | null): Promise<unknown> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, videoId);
    if (video === null || video.deletedAt !== null) return 'gone';
    return patchVideo(tx, video, { posterAtSeconds });
  });

export const remove = (videoId: string): Promise<unknown> =>
  db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' }, { deletedBy: 'customer' }));

/** What an encoder makes of the task of a poster, but for the picture. */
async function make(task: ClaimedTask, replaced: readonly string[] = []) {
  const job = await findEncodeJob(db, task.jobId);
  const prefix = (await openAttemptPrefix(db, attemptOf(task))) ?? 'none/';
  return {
    ...{ prefix, indexKey: `${prefix}index.json`, replaced },
    ...{ output: { posterAtSeconds: job?.posterAtSeconds }, report: { seconds: 1 } },
  };
}

/** Ends the task of a poster as an encoder does. */
export async function finishMade(task: ClaimedTask, replaced: readonly string[] = []): Promise<string> {
  const outcome = await finishPoster(db, task, await make(task, replaced));
  if (outcome !== 'done') await abandonAttempt(db, attemptOf(task));
  return outcome;
}

/** Posters chosen for many videos, as `wish` would write them one by one. */
export async function queuePosters({ accountId, projectId }: SeededAccount, count: number): Promise<void> {
  await db.query(
    `with numbers as (
       select $3 || '_' || lpad(n::text, 6, '0') as n from generate_series(1, $4::int) as n
     ), made as (
       insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, index_key, poster_job_id,
         poster_at_seconds, created_at, updated_at)
       select 'vid_' || n, $2, $1, 'Poster', 'ready', 1000, 'k', 'first/index.json', 'job_' || n, 1, now(), now()
       from numbers
     ), jobs as (
       insert into encode_jobs (id, video_id, account_id, is_poster, created_at)
       select 'job_' || n, 'vid_' || n, $1, true, clock_timestamp() from numbers
     )
     insert into encode_tasks (id, job_id, video_id, account_id, kind, priority, run_after, created_at)
     select 'tsk_' || n, 'job_' || n, 'vid_' || n, $1, 'poster', -1, clock_timestamp(), now() from numbers`,
    [accountId, projectId, newId('job').slice(4), count],
  );
}
