import { z } from 'zod';
import { type Queryable } from './db.ts';

/** A standing hold as the bucket keeps it: enough to place it again in a record that does not know it. */
export const holdCopy = z.object({
  id: z.string(),
  videoId: z.string(),
  source: z.enum(['admin', 'automatic', 'kubernetes']),
  reference: z.string(),
  reason: z.string().nullable(),
  legal: z.boolean(),
});
export type HoldCopy = z.output<typeof holdCopy>;

/** Holds whose copy is missing or is no longer true (`standing`), or there though they were lifted. */
export async function holdsToCopy(
  db: Queryable,
  limit: number,
): Promise<(HoldCopy & { standing: boolean })[]> {
  const { rows } = await db.query<HoldCopy & { standing: boolean }>(
    `select id, video_id as "videoId", source, reference, reason, legal, lifted_at is null as standing
     from video_holds where (lifted_at is null) = (copied_at is null) order by lifted_at is null, id limit $1`,
    [limit],
    'holds-to-copy',
  );
  return rows;
}

/** Records that the copy is as the hold was; one that changed meanwhile is copied again. */
export async function markHoldCopied(db: Queryable, hold: HoldCopy & { standing: boolean }): Promise<void> {
  await db.query(
    `update video_holds set copied_at = case when $2 then clock_timestamp() end
     where id = $1 and (lifted_at is null) = $2 and reason is not distinct from $3 and legal = $4`,
    [hold.id, hold.standing, hold.reason, hold.legal],
    'hold-copied',
  );
}
