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

const columns = `h.id, h.video_id as "videoId", h.source, h.reference, h.reason, h.legal`;

/** A hold whose copy is not what it should be. */
export interface HoldToCopy extends HoldCopy {
  standing: boolean;
  /** Of one that was lifted: another of the same name stands, and the copy is that one's. */
  succeeded: boolean;
}

/** Holds whose copy is missing or is no longer true (`standing`), or there though they were lifted; by rising id. */
export async function holdsToCopy(db: Queryable, after: string, limit: number): Promise<HoldToCopy[]> {
  const { rows } = await db.query<HoldToCopy>(
    `select ${columns}, h.lifted_at is null as standing, h.lifted_at is not null and exists (
       select from video_holds s where (s.video_id, s.source, s.reference) = (h.video_id, h.source, h.reference)
         and s.lifted_at is null) as succeeded
     from video_holds h where (h.lifted_at is null) = (h.copied_at is null) and h.id > $1 order by h.id limit $2`,
    [after, limit],
    'holds-to-copy',
  );
  return rows;
}

/** Records that the copy is as the hold was; one that changed meanwhile is copied again. */
export async function markHoldCopied(db: Queryable, hold: HoldToCopy): Promise<void> {
  await db.query(
    `update video_holds set copied_at = case when $2 then clock_timestamp() end
     where id = $1 and (lifted_at is null) = $2 and reason is not distinct from $3 and legal = $4`,
    [hold.id, hold.standing, hold.reason, hold.legal],
    'hold-copied',
  );
}

/** An instant of the record's clock, as text, since a `Date` has no microseconds. */
export async function recordTime(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ now: string }>('select clock_timestamp()::text as now');
  return rows[0]?.now ?? '-infinity';
}

/** A standing hold, and whether its copy is in the bucket by what the record knows of that instant. */
export interface StandingHold extends HoldCopy {
  copied: boolean;
}

/**
 * Standing holds in the order of what they are called by.
 * @param at of `recordTime`: what was copied later counts as not copied
 * @param after the last of the page before
 */
export async function standingHolds(
  db: Queryable,
  { at, after, limit }: { at: string; after: HoldCopy | undefined; limit: number },
): Promise<StandingHold[]> {
  const { rows } = await db.query<StandingHold>(
    `select ${columns}, coalesce(h.copied_at <= $1::timestamptz, false) as copied from video_holds h
     where h.lifted_at is null and (h.video_id, h.source, h.reference) > ($2, $3, $4)
     order by h.video_id, h.source, h.reference limit $5`,
    [at, after?.videoId ?? '', after?.source ?? '', after?.reference ?? '', limit],
    'holds-standing',
  );
  return rows;
}

/** Has a hold copied again whose copy was found not to be there; not one that was copied since `at`. */
export async function copyHoldAgain(db: Queryable, id: string, at: string): Promise<void> {
  await db.query(
    'update video_holds set copied_at = null where id = $1 and lifted_at is null and copied_at <= $2::timestamptz',
    [id, at],
    'hold-copy-again',
  );
}

/**
 * Whether nobody wants a copy: no such hold stands, in a record that may be trusted with that. One that was restored
 * may not, until its holds are placed again and the team allows sweeps.
 */
export async function isStrayCopy(db: Queryable, { videoId, source, reference }: HoldCopy): Promise<boolean> {
  const { rows } = await db.query<{ stray: boolean }>(
    `select not r.sweeps_off and not r.holds_wanted and not exists (
       select from video_holds h
       where h.video_id = $1 and h.source = $2 and h.reference = $3 and h.lifted_at is null) as stray
     from record_state r`,
    [videoId, source, reference],
    'hold-copy-stray',
  );
  return rows[0]?.stray === true;
}
