import { ProblemError } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { writeAudit } from './audit.ts';
import { type Database, type Transaction } from './db.ts';
import { doomedByFailure, doomObjects, moveVideo, type MoveResult } from './video-moves.ts';
import { lockVideo, type VideoRow } from './videos.ts';

export type HoldSource = 'admin' | 'automatic' | 'kubernetes';

/** Names one hold: its source, and within it a reference (`admin`, a check's name, `NAMESPACE/NAME` of a `VideoHold`). */
export interface HoldReference {
  videoId: string;
  source: HoldSource;
  reference: string;
}

/** The one way to hold a video, for the admin routes, the command line and Kubernetes. */
export interface HoldCommands {
  /**
   * Places a hold, or updates reason and legal flag of the one that this source and reference already has (which
   * tells nobody).
   *
   * @throws ProblemError `not_found` (unknown or deleted), `invalid_video_state` (failed)
   */
  place(hold: Hold, actor: string): Promise<VideoRow>;
  /**
   * Lifts one hold; the video plays again when it was the last. Lifting what is not held changes nothing. A
   * deleted video's legal hold can be lifted too: then its files go.
   *
   * @throws ProblemError `not_found` for an unknown video, or a deleted one without such a hold
   */
  lift(hold: HoldReference, actor: string): Promise<VideoRow>;
}

interface Hold extends HoldReference {
  /** Told to the customer, unless the matter is legal. */
  reason: string | null;
  /** A legal matter: nobody is told, and files stay until it is lifted. */
  legal: boolean;
}

/**
 * @param guard refuses, by throwing, what may no longer be done; the last step of each transaction
 * @returns commands that write their audit row, by `actor`, in the same transaction
 */
export const createHoldCommands = (
  db: Database,
  guard: (tx: Transaction) => Promise<void> = () => Promise.resolve(),
): HoldCommands => ({
  place: (hold, actor) =>
    db.transaction(async (tx) => {
      const video = await placeByActor(tx, hold, actor);
      await guard(tx);
      return video;
    }),
  lift: (hold, actor) =>
    db.transaction(async (tx) => {
      const video = await liftByActor(tx, hold, actor);
      await guard(tx);
      return video;
    }),
});

/** `HoldCommands.place`, within a transaction. */
export async function placeByActor(tx: Transaction, hold: Hold, actor: string): Promise<VideoRow> {
  const { video } = await placeHold(tx, hold);
  const { videoId, ...details } = hold;
  await writeAudit(tx, { actor, action: 'video.hold', subject: videoId, details });
  return video;
}

/** `HoldCommands.lift`, within a transaction. */
export async function liftByActor(tx: Transaction, hold: HoldReference, actor: string): Promise<VideoRow> {
  const { video } = await liftHold(tx, hold);
  const { videoId, ...details } = hold;
  await writeAudit(tx, { actor, action: 'video.lift', subject: videoId, details });
  return video;
}

/** Places a hold as `HoldCommands.place` does, without its audit row. */
export async function placeHold(tx: Transaction, hold: Hold): Promise<MoveResult> {
  const video = await lockVideo(tx, hold.videoId);
  if (!video || video.deletedAt !== null) throw new ProblemError('not_found');
  const { rowCount: updated } = await tx.query(
    `update video_holds set reason = $4, legal = $5, copied_at = null
     where video_id = $1 and source = $2 and reference = $3 and lifted_at is null`,
    [hold.videoId, hold.source, hold.reference, hold.reason, hold.legal],
    'hold-update',
  );
  if (updated > 0) {
    // It may no longer be a legal one.
    await doomOfFailed(tx, video);
    return { video, moved: false };
  }
  // The move comes first: it refuses what cannot be held, before a row says it is.
  const result = await moveVideo(tx, hold.videoId, {
    type: 'hold_placed',
    legal: hold.legal,
    reason: hold.reason,
  });
  await tx.query(
    `insert into video_holds (id, video_id, source, reference, reason, legal, placed_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp())`,
    [newId('hld'), hold.videoId, hold.source, hold.reference, hold.reason, hold.legal],
    'hold-insert',
  );
  return result;
}

async function liftHold(tx: Transaction, hold: HoldReference): Promise<MoveResult> {
  const video = await lockVideo(tx, hold.videoId);
  if (!video) throw new ProblemError('not_found');
  const { rowCount: lifted } = await tx.query(
    `update video_holds set lifted_at = clock_timestamp()
     where video_id = $1 and source = $2 and reference = $3 and lifted_at is null`,
    [hold.videoId, hold.source, hold.reference],
    'hold-lift',
  );
  if (video.deletedAt !== null) return liftOnDeleted(tx, video, lifted > 0);
  await doomOfFailed(tx, video);
  return moveVideo(tx, hold.videoId, { type: 'hold_lifted' });
}

/** What a legal hold kept of a failed video goes as it would have gone when the video failed. */
async function doomOfFailed(tx: Transaction, { id, status, failureCode }: VideoRow): Promise<void> {
  if (status === 'failed') await doomObjects(tx, id, doomedByFailure(failureCode));
}

async function liftOnDeleted(tx: Transaction, video: VideoRow, lifted: boolean): Promise<MoveResult> {
  if (!lifted) throw new ProblemError('not_found');
  await doomObjects(tx, video.id);
  return { video, moved: false };
}
