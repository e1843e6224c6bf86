import { type Database, type Transaction } from './db.ts';
import { type ClaimedTask } from './encode-claims.ts';
import { addToReport, endJob, endTask, insertOutput, isDone, type Report } from './encode-endings.ts';
import { lockRunningJob } from './encode-jobs.ts';
import { type FinishOutcome } from './encode-results.ts';
import { chargePoster } from './encode-shares.ts';
import { wantsTask } from './encode-wanted.ts';
import { doomPosterLosers } from './poster-jobs.ts';
import { lockVideo, patchVideo } from './videos.ts';

export interface FinishedPoster {
  /** Holds the poster and the delivery index that names it. */
  prefix: string;
  indexKey: string;
  output: object;
  /** Prefixes that nothing is read from any more once the index is in use. */
  replaced: readonly string[];
  report: Report;
}

/**
 * As long as backups are kept (docs/retention.md): a record that came back from one plays by the index that it knows.
 * Both are small, and each that is replaced took a job.
 */
const replacedFor = `interval '35 days'`;

/**
 * Ends the task of a poster, and with it the job: the video plays by the new delivery index, its version rises and
 * the CDN hears of it. What the index replaces goes 35 days later, or with the video.
 */
export const finishPoster = (
  db: Database,
  task: ClaimedTask,
  poster: FinishedPoster,
): Promise<FinishOutcome> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, task.videoId);
    const job = wantsTask(video, task) ? await lockRunningJob(tx, task.jobId) : null;
    if (video === null || !job || !(await endTask(tx, task))) {
      return (await isDone(tx, task)) ? 'done' : 'lost';
    }
    const { prefix, indexKey, output } = poster;
    await chargePoster(tx, task.jobId);
    await insertOutput(tx, task, { prefix, output });
    await addToReport(tx, task.jobId, poster.report);
    await endJob(tx, task.jobId, 'succeeded');
    await tx.query('update videos set index_key = $2 where id = $1', [video.id, indexKey], 'poster-switch');
    await patchVideo(tx, { ...video, indexKey }, {});
    await doomReplaced(tx, video.id, poster.replaced);
    await doomPosterLosers(tx, video.id);
    return 'done';
  });

async function doomReplaced(tx: Transaction, videoId: string, prefixes: readonly string[]): Promise<void> {
  await tx.query(
    `update object_prefixes set delete_after = clock_timestamp() + ${replacedFor}
     where video_id = $1 and prefix = any($2) and kind = 'attempt' and delete_after is null`,
    [videoId, prefixes],
    'poster-doom-replaced',
  );
}
