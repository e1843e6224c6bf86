import { type VideoStatus } from '@millrace/contract';
import { type Queryable } from './db.ts';

/** What the record knows of a `VideoHold`. */
export interface RecordedHold {
  /** Null when there is no such video. */
  video: { status: VideoStatus; deleted: boolean } | null;
  /** The hold that it has placed and nobody has lifted. */
  hold: {
    reason: string | null;
    legal: boolean;
    placedAt: Date;
    /** When the last process of the CDN confirmed it; null while one has not. */
    effectiveAt: Date | null;
  } | null;
}

interface Row {
  status: VideoStatus;
  deleted: boolean;
  reason: string | null;
  legal: boolean | null;
  placedAt: Date | null;
  effectiveAt: Date | null;
}

/** The video of a `VideoHold`, and its own hold on it. */
export async function readKubernetesHold(
  db: Queryable,
  { videoId, reference }: { videoId: string; reference: string },
): Promise<RecordedHold> {
  const { rows } = await db.query<Row>(
    `select v.status, v.deleted_at is not null as deleted, h.reason, h.legal, h.placed_at as "placedAt",
       h.effective_at as "effectiveAt"
     from videos v
     left join video_holds h on h.video_id = v.id and h.source = 'kubernetes' and h.reference = $2
       and h.lifted_at is null
     where v.id = $1`,
    [videoId, reference],
    'kubernetes-hold',
  );
  const row = rows[0];
  if (row === undefined) return { video: null, hold: null };
  const { status, deleted, reason, legal, placedAt, effectiveAt } = row;
  const hold = placedAt === null ? null : { reason, legal: legal === true, placedAt, effectiveAt };
  return { video: { status, deleted }, hold };
}
