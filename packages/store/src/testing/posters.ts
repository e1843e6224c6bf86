import { expect } from '@jest/globals';
import { newId } from '@millrace/domain';
import { seedAccount, type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  createEncodeJob,
  findEncodeJob,
  findIngestReport,
  finishJob,
  finishPlan,
  finishPoster,
  finishTask,
  lockVideo,
  moveVideo,
  openAttemptPrefix,
  patchVideo,
} from '../index.ts';
import { column, db, mustClaim, one } from './encode-queue.ts';

/** A video that plays, as if it had been encoded. */
export async function seedReadyVideo(account: SeededAccount): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  const changes = { indexKey: 'first/index.json', durationMs: 60_000 };
  await db.transaction((tx) => moveVideo(tx, videoId, { type: 'encoding_finished' }, { changes }));
  return videoId;
}

/** Begins what an attempt writes. @throws Error when its task is not its own any more */
export async function openPrefix(task: ClaimedTask): Promise<string> {
  const prefix = await openAttemptPrefix(db, attemptOf(task));
  if (prefix === null) throw new Error('no prefix');
  return prefix;
}

/** An encode with pictures, up to its assemble task, which is claimed. */
export async function assembling(account: SeededAccount) {
  const videoId = await seedProcessingVideo(db, account);
  await db.transaction((tx) => createEncodeJob(tx, { videoId, accountId: account.accountId }));
  const plan = { manifest: { v: 1 }, plannerVersion: 1, durationMs: 60_000, report: { planned: true } };
  await finishPlan(db, await mustClaim(), { ...plan, tasks: [{ kind: 'images', index: 0, cost: 1 }] });
  const images = await mustClaim();
  const imagesPrefix = await openPrefix(images);
  await finishTask(db, images, { prefix: imagesPrefix, output: {}, report: {} });
  return { videoId, imagesPrefix, assemble: await mustClaim() };
}

/** Ends an assemble task. @param posterAtSeconds the moment that the encode's poster shows; undefined when unknown */
export async function assembled(task: ClaimedTask, posterAtSeconds?: number | null): Promise<string> {
  const prefix = await openPrefix(task);
  const qualities = ['360p'] as const;
  const encode = { prefix, indexKey: `${prefix}index.json`, qualities, durationMs: 60_000, report: {} };
  expect(await finishJob(db, task, { ...encode, posterAtSeconds })).toBe('done');
  return prefix;
}

/** A video that was encoded and plays, and the prefixes of its poster and index. */
export async function playing() {
  const account = await seedAccount(db);
  const { videoId, imagesPrefix, assemble } = await assembling(account);
  const indexPrefix = await assembled(assemble, null);
  await db.query('delete from outbox');
  return { account, videoId, replaced: [imagesPrefix, indexPrefix].sort() };
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
export async function make(task: ClaimedTask, replaced: readonly string[] = []) {
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

/** The jobs of a video's posters, with their tasks. */
export const jobsOf = (videoId: string): Promise<unknown[]> =>
  column(
    `select j.state || ' ' || string_agg(t.kind || ' ' || t.status, ', ' order by t.id) as it
     from encode_jobs j join encode_tasks t on t.job_id = j.id
     where j.video_id = $1 and j.id <> (select current_job_id from videos where id = $1) group by j.id order by j.id`,
    [videoId],
  );

/** The prefixes that the sweep may remove now. */
export const doomed = (): Promise<unknown[]> =>
  column('select prefix as it from object_prefixes where delete_after <= clock_timestamp() order by prefix');

/** What the ingest report says of a video's poster. */
export async function reportOf(videoId: string): Promise<unknown> {
  const { projectId } = await one<{ projectId: string }>(
    'select project_id as "projectId" from videos where id = $1',
    [videoId],
  );
  return (await findIngestReport(db, projectId, videoId))?.details['poster'];
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
