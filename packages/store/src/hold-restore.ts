import { newId } from '@millrace/domain';
import { writeAudit } from './audit.ts';
import { restoreBanOf } from './ban-holds.ts';
import { type Database, type Transaction } from './db.ts';
import { type HoldCopy } from './hold-copies.ts';
import { placeHold } from './holds.ts';
import { recordState } from './record-state.ts';
import { lockVideo } from './videos.ts';

const actor = 'restore';

/**
 * Places a hold of the life before again in a restored record: also on a video that failed or was deleted there since,
 * whose files a legal hold keeps. The ban that placed it comes back with it, or the hold would be lifted for want of one.
 *
 * @returns `stands` when the record has it; `unknown` when it does not know the video; `over` when holds are no longer
 *   wanted: a former leader was still at it, and what was lifted since must stay so
 */
export const restoreHold = (
  db: Database,
  copy: HoldCopy,
): Promise<'placed' | 'stands' | 'unknown' | 'over'> =>
  db.transaction(async (tx) => {
    const video = await lockVideo(tx, copy.videoId);
    if (video === null) return 'unknown';
    if (!(await recordState(tx)).holdsWanted) return 'over';
    await restoreBanOf(tx, copy, { accountId: video.accountId, actor });
    if (await stands(tx, copy)) return 'stands';
    if (video.deletedAt === null && video.status !== 'failed') await placeHold(tx, copy);
    else await recordHold(tx, copy);
    const { id, videoId, ...details } = copy;
    await writeAudit(tx, {
      actor,
      action: 'video.hold',
      subject: videoId,
      details: { ...details, copyOf: id },
    });
    return 'placed';
  });

async function stands(
  tx: Transaction,
  { videoId, source, reference, reason, legal }: HoldCopy,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from video_holds where video_id = $1 and source = $2 and reference = $3 and lifted_at is null
       and reason is not distinct from $4 and legal = $5`,
    [videoId, source, reference, reason, legal],
    'hold-stands',
  );
  return rowCount > 0;
}

/** Nothing is left to hold back, so nothing moves; what was given up waits while a legal hold stands. */
async function recordHold(tx: Transaction, hold: HoldCopy): Promise<void> {
  await tx.query(
    `insert into video_holds as h (id, video_id, source, reference, reason, legal, placed_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp())
     on conflict (video_id, source, reference) where lifted_at is null do update set
       reason = excluded.reason, legal = h.legal or excluded.legal, copied_at = null`,
    [newId('hld'), hold.videoId, hold.source, hold.reference, hold.reason, hold.legal],
    'hold-record',
  );
}
