import { ProblemError, type Video } from '@millrace/contract';
import {
  createEncodeJob,
  createHoldCommands,
  type Database,
  findEncodeJob,
  type HoldReference,
  lockVideo,
  moveVideo,
  videoResource,
  writeAudit,
} from '@millrace/store';

/**
 * What the team does to a video, for the admin routes and the command line. Each act writes its audit row, by
 * `actor`, in its own transaction.
 */

/** The team has one hold per video: a second one changes its reason. */
const teamHold = (videoId: string): HoldReference => ({ videoId, source: 'admin', reference: 'admin' });

/**
 * Holds a video: it stops playing within about a minute.
 * @throws ProblemError `not_found`; `invalid_video_state` for a failed one
 */
export async function holdVideo(
  store: Database,
  input: { videoId: string; reason: string | null; legal: boolean; actor: string },
): Promise<Video> {
  const { videoId, reason, legal, actor } = input;
  const hold = { ...teamHold(videoId), reason, legal };
  return videoResource(await createHoldCommands(store).place(hold, actor));
}

/** Lifts the team's hold; holds of others stay. @throws ProblemError `not_found` */
export async function liftVideo(
  store: Database,
  { videoId, actor }: { videoId: string; actor: string },
): Promise<Video> {
  return videoResource(await createHoldCommands(store).lift(teamHold(videoId), actor));
}

/** Removes a video; the customer hears `video.removed` unless the matter is legal. @throws ProblemError `not_found` */
export async function removeVideo(
  store: Database,
  input: { videoId: string; reason: string | null; legal: boolean; actor: string },
): Promise<void> {
  const { videoId, reason, legal, actor } = input;
  await store.transaction(async (tx) => {
    await moveVideo(tx, videoId, { type: 'team_removal', reason, legal }, { deletedBy: 'team' });
    await writeAudit(tx, { actor, action: 'video.remove', subject: videoId, details: { reason, legal } });
  });
}

/**
 * Encodes a failed video again: a new job takes the place of its latest.
 * @throws ProblemError `not_found`; `invalid_video_state` when it is not failed, was over a plan limit, or this
 *   is not its latest job
 */
export async function retryEncodeJob(
  store: Database,
  { jobId, actor }: { jobId: string; actor: string },
): Promise<Video> {
  return store.transaction(async (tx) => {
    const job = await findEncodeJob(tx, jobId);
    if (!job) throw new ProblemError('not_found');
    const { videoId, accountId } = job;
    const before = await lockVideo(tx, videoId);
    if (before?.currentJobId !== jobId) {
      throw new ProblemError('invalid_video_state', { detail: 'This is not the latest job of its video.' });
    }
    const newJobId = await createEncodeJob(tx, { videoId, accountId });
    const { video } = await moveVideo(tx, videoId, { type: 'team_retry' });
    await writeAudit(tx, { actor, action: 'encode.retry', subject: videoId, details: { jobId, newJobId } });
    return videoResource(video);
  });
}
