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
  /** By what it is known: the word of every process, or besides that of some the time that has passed. */
  proof: 'confirmed' | 'waited';
}

/**
 * How much longer than the others a process may be silent before its word is not waited for any longer. It may live and
 * serve all the same, cut off from the bus, by what it reads from the record.
 */
const silentAfter = `interval '90 seconds'`;
/** The same of one that has read no heartbeat yet: it says so each 20 s, or it ended while it started. */
const stillbornAfter = `interval '30 seconds'`;
/** When any was heard of last. One ahead of that was, before the clock of the database stepped back. */
const lastHeard = `(select least(max(seen_at), clock_timestamp()) from cdn_processes)`;
/**
 * No process decides by a state that nothing has confirmed for 60 s (contract CDN-339), and 5 s are for clocks that
 * differ: a heartbeat has the time of this database, its age is told by the clock of the process.
 */
const believedFor = `interval '65 seconds'`;

/** Takes in what a process of the CDN told of itself. Older words change nothing. */
export async function confirmPlaybackState(
  db: Queryable,
  { bootId, confirmedUpTo, ended }: { bootId: string; confirmedUpTo: Date; ended: boolean },
): Promise<void> {
  await db.query(
    `insert into cdn_processes as p (boot_id, confirmed_up_to, seen_at) values ($1, $2, clock_timestamp())
     on conflict (boot_id) do update set confirmed_up_to = greatest(p.confirmed_up_to, excluded.confirmed_up_to),
       seen_at = excluded.seen_at, cut_off = false`,
    // Nothing is waited for from a process that is gone, and a late copy of an older word does not bring it back.
    [bootId, ended ? 'infinity' : confirmedUpTo],
    'cdn-process-confirmed',
  );
}

/**
 * Takes in that a process of the CDN is there, which it told without the bus.
 * @param cutOff it could not tell by the bus: it lives, serves by what it reads from the record, and confirms nothing
 */
export async function noteCdnProcess(
  db: Queryable,
  { bootId, cutOff }: { bootId: string; cutOff: boolean },
): Promise<void> {
  await db.query(
    `insert into cdn_processes (boot_id, confirmed_up_to, seen_at, cut_off)
     values ($1, to_timestamp(0), clock_timestamp(), $2)
     on conflict (boot_id) do update set seen_at = excluded.seen_at, cut_off = excluded.cut_off`,
    [bootId, cutOff],
    'cdn-process-noted',
  );
}

/**
 * Notes when holds were first seen committed: a process of the CDN that has read a heartbeat made after that knows
 * them. Where the database's clock has stepped back, that is not before the latest heartbeat: what it told proves
 * nothing of a hold that came after it.
 * @returns how many holds some process may not know yet, and how long the oldest has waited, in seconds
 */
export async function markSpreadingHolds(db: Queryable): Promise<{ count: number; oldestSeconds: number }> {
  await db.query(
    `update video_holds set seen_at = greatest(clock_timestamp(), (select max(latest) from heartbeats))
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
 * Marks holds that hold on every process of the CDN, with an audit row each: every process has confirmed them. Where one
 * may live that cannot (it is cut off from the bus, or vanished without a word within the hour for which it is
 * remembered), and where none was ever heard of, the hold must besides be older than what any process believes.
 */
export function settleSpreadingHolds(db: Database, limit = 500): Promise<EffectiveHold[]> {
  return db.transaction(async (tx) => {
    const { rows } = await tx.query<EffectiveHold>(
      `with newest as (select ${lastHeard} as at),
       process as (
         select p.confirmed_up_to, p.cut_off, p.seen_at > newest.at - case
           when p.confirmed_up_to <= to_timestamp(0) then ${stillbornAfter} else ${silentAfter} end as heard
         from cdn_processes p, newest),
       known as (
         select min(confirmed_up_to) filter (where heard and not cut_off) as up_to,
           coalesce(bool_or(confirmed_up_to < 'infinity' and (cut_off or not heard)), true) as incomplete
         from process),
       settled as (
         select h.id, known.incomplete from video_holds h, known
         where h.lifted_at is null and h.effective_at is null
           and (known.up_to is null or known.up_to > h.seen_at)
           and (not known.incomplete or h.seen_at < clock_timestamp() - ${believedFor})
         order by h.placed_at limit $1 for update of h skip locked)
       update video_holds h set effective_at = clock_timestamp() from settled where h.id = settled.id
       returning h.video_id as "videoId", h.source, h.reference, h.placed_at as "placedAt",
         h.effective_at as "effectiveAt", case when incomplete then 'waited' else 'confirmed' end as proof`,
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
    `delete from cdn_processes where seen_at < ${lastHeard} - interval '1 hour'`,
    [],
    'cdn-processes-forget',
  );
  return rowCount;
}
