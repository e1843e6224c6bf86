import { writeAudit } from './audit.ts';
import { type Database, type Queryable } from './db.ts';
import { type HoldSource } from './holds.ts';

/** A hold that every process of the CDN knows, as of now. */
export interface EffectiveHold {
  videoId: string;
  source: HoldSource;
  reference: string;
  placedAt: Date;
  effectiveAt: Date;
}

/**
 * How much longer than the others a process may be silent before it is held to be gone. By then it has, if it lives,
 * lost what confirms its states for more than 60 s, and refuses everything or has read them anew.
 */
const goneAfter = `interval '90 seconds'`;

/** Takes in what a process of the CDN told of itself. Older words change nothing. */
export async function confirmPlaybackState(
  db: Queryable,
  { bootId, confirmedUpTo, ended }: { bootId: string; confirmedUpTo: Date; ended: boolean },
): Promise<void> {
  await db.query(
    `insert into cdn_processes as p (boot_id, confirmed_up_to, seen_at) values ($1, $2, clock_timestamp())
     on conflict (boot_id) do update set confirmed_up_to = greatest(p.confirmed_up_to, excluded.confirmed_up_to),
       seen_at = excluded.seen_at`,
    // Nothing is waited for from a process that is gone, and a late copy of an older word does not bring it back.
    [bootId, ended ? 'infinity' : confirmedUpTo],
    'cdn-process-confirmed',
  );
}

/**
 * Notes when holds were first seen committed: a process of the CDN that has read a heartbeat made after that knows
 * them.
 * @returns how many holds some process may not know yet, and how long the oldest has waited, in seconds
 */
export async function markSpreadingHolds(db: Queryable): Promise<{ count: number; oldestSeconds: number }> {
  await db.query(
    `update video_holds set seen_at = clock_timestamp()
     where lifted_at is null and effective_at is null and seen_at is null`,
    [],
    'holds-seen',
  );
  const { rows } = await db.query<{ count: number; oldestSeconds: number }>(
    `select count(*), coalesce(extract(epoch from clock_timestamp() - min(placed_at)), 0)::float8 as "oldestSeconds"
     from video_holds where lifted_at is null and effective_at is null`,
    [],
    'holds-spreading',
  );
  return rows[0] ?? { count: 0, oldestSeconds: 0 };
}

/**
 * Marks holds that every process of the CDN has confirmed, with an audit row each. Without any process nobody plays.
 * A process that vanished without a word stands in the way until others have been heard of for long without it.
 */
export function settleSpreadingHolds(db: Database, limit = 500): Promise<EffectiveHold[]> {
  return db.transaction(async (tx) => {
    const { rows } = await tx.query<EffectiveHold>(
      `with confirmed as (
         select min(confirmed_up_to) as up_to from cdn_processes
         where seen_at > (select max(seen_at) from cdn_processes) - ${goneAfter}),
       settled as (
         select h.id from video_holds h, confirmed
         where h.lifted_at is null and h.effective_at is null
           and (confirmed.up_to is null or confirmed.up_to > h.seen_at)
         order by h.placed_at limit $1 for update of h skip locked)
       update video_holds h set effective_at = clock_timestamp() from settled where h.id = settled.id
       returning h.video_id as "videoId", h.source, h.reference, h.placed_at as "placedAt",
         h.effective_at as "effectiveAt"`,
      [limit],
      'holds-settle',
    );
    for (const { videoId, ...details } of rows) {
      await writeAudit(tx, {
        actor: 'reconciler',
        action: 'video.hold.effective',
        subject: videoId,
        details,
      });
    }
    return rows;
  });
}

/** Forgets processes of the CDN that are long gone. */
export async function forgetCdnProcesses(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `delete from cdn_processes where seen_at < (select max(seen_at) from cdn_processes) - interval '1 hour'`,
    [],
    'cdn-processes-forget',
  );
  return rowCount;
}
