import { type Database, type Queryable, type Transaction } from './db.ts';
import { lockUsage } from './usage.ts';

/** What was not as the record says: a video's reservation, or without a video an account's sum of them; milliseconds. */
export interface UsageDrift {
  accountId: string;
  videoId?: string;
  kind: 'stored' | 'upload';
  wasMs: number;
  isMs: number;
}

/**
 * Recomputes what videos hold of their accounts' limits from the record, and puts right what differs: seconds that a
 * video holds though it is deleted or failed, those that it should hold and does not, or not as many as were measured,
 * and sums that are not what reservations say. Nothing should: each drift is a fault to be looked into.
 *
 * Watched time is not recomputed: what it was counted from is forgotten after three days (`purgeViews`).
 */
export async function correctUsageDrift(db: Database): Promise<UsageDrift[]> {
  await releaseStrays(db);
  const drifts: UsageDrift[] = [];
  const unlike = await unlikeReservations(db, null);
  for (const [accountId, videoIds] of byAccount(unlike)) {
    drifts.push(...(await db.transaction((tx) => correctReservations(tx, accountId, videoIds))));
  }
  for (const accountId of await driftedAccounts(db)) {
    drifts.push(...(await db.transaction((tx) => correctSums(tx, accountId))));
  }
  return drifts;
}

/**
 * Ends reservations that outlived their video; what they were in sums is found and told as the sums' drift. The videos
 * are locked: one that is tried again reserves anew.
 */
async function releaseStrays(db: Queryable): Promise<void> {
  await db.query(
    `update usage_reservations set released_at = clock_timestamp()
     where kind = 'stored' and released_at is null and video_id in (
       select v.id from videos v join usage_reservations r on r.video_id = v.id
       where r.kind = 'stored' and r.released_at is null and (v.deleted_at is not null or v.status = 'failed')
       for update of v skip locked)`,
    [],
    'usage-release-strays',
  );
}

interface UnlikeReservation {
  accountId: string;
  videoId: string;
  kind: 'stored' | 'upload';
  /** 0 when there is none. */
  wasMs: number;
  isMs: number;
}

/** What the plan of a video's encode measured, which is what was reserved with it (`finishPlan`). */
const plannedMs = `floor((j.manifest ->> 'durationSeconds')::float8 * 1000 + 0.5)::bigint`;

/**
 * Reservations of videos that were planned, or play, which do not stand or are not as long as what was measured. What
 * plays is as long as what was planned but for a part of a frame: manifests, which are large, are read only of those
 * that differ. An upload counts in one period, so a lost charge of an earlier one is of no interest.
 * @param videoIds the ones to look at; null for all
 */
async function unlikeReservations(
  db: Queryable,
  videoIds: readonly string[] | null,
): Promise<UnlikeReservation[]> {
  const { rows } = await db.query<UnlikeReservation>(
    `select v.account_id as "accountId", v.id as "videoId", k.kind,
       coalesce(r.amount_ms, 0)::bigint as "wasMs", measured.ms as "isMs"
     from videos v
     cross join (values ('stored'), ('upload')) k (kind)
     left join usage_reservations r on r.video_id = v.id and r.kind = k.kind and r.released_at is null
     left join encode_jobs j on j.id = v.current_job_id
     left join usage u on u.account_id = v.account_id
     cross join lateral (select case
       when v.status = 'processing' then ${plannedMs}
       when r.amount_ms = v.duration_ms then r.amount_ms
       else coalesce(${plannedMs}, v.duration_ms) end as ms) measured
     where v.deleted_at is null and v.status in ('processing', 'ready', 'held')
       and ($1::text[] is null or v.id = any ($1))
       and (k.kind = 'stored' or r.video_id is not null or j.created_at >= u.period_start)
       and measured.ms is not null and r.amount_ms is distinct from measured.ms
     order by v.account_id, v.id, k.kind`,
    [videoIds],
    'usage-unlike-reservations',
  );
  return rows;
}

function byAccount(unlike: readonly UnlikeReservation[]): Map<string, string[]> {
  const videos = new Map<string, string[]>();
  for (const { accountId, videoId } of unlike) {
    videos.set(accountId, [...(videos.get(accountId) ?? []), videoId]);
  }
  return videos;
}

/** Looks again under the locks of the videos and of the account. A video that somebody has is left for the next run. */
async function correctReservations(
  tx: Transaction,
  accountId: string,
  videoIds: readonly string[],
): Promise<UsageDrift[]> {
  const { rows: locked } = await tx.query<{ id: string }>(
    'select id from videos where id = any ($1) order by id for no key update skip locked',
    [videoIds],
    'usage-lock-videos',
  );
  const { periodStart } = await lockUsage(tx, accountId);
  const unlike = await unlikeReservations(
    tx,
    locked.map(({ id }) => id),
  );
  await tx.query(
    `insert into usage_reservations (video_id, kind, account_id, amount_ms, period_start, created_at)
     select video_id, kind, $1, amount_ms, $2, clock_timestamp()
     from unnest($3::text[], $4::text[], $5::bigint[]) as r (video_id, kind, amount_ms)
     on conflict (video_id, kind) do update set amount_ms = excluded.amount_ms,
       period_start = case when usage_reservations.released_at is null
         then usage_reservations.period_start else excluded.period_start end,
       released_at = null`,
    [
      ...[accountId, periodStart],
      ...[
        unlike.map(({ videoId }) => videoId),
        unlike.map(({ kind }) => kind),
        unlike.map(({ isMs }) => isMs),
      ],
    ],
    'usage-correct-reservations',
  );
  return [...unlike, ...(await correctSums(tx, accountId))];
}

/** What the standing reservations of an account `u` add up to. */
const sums = `
  coalesce(sum(r.amount_ms) filter (where r.kind = 'stored'), 0)::bigint as "storedMs",
  coalesce(sum(r.amount_ms) filter (where r.kind = 'upload' and r.period_start = u.period_start), 0)::bigint
    as "uploadMs"
  from usage u left join usage_reservations r on r.account_id = u.account_id and r.released_at is null`;

/** Accounts whose sums differ from their reservations; a reservation and its sum change in one transaction. */
async function driftedAccounts(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from (
       select u.account_id, u.stored_ms, u.upload_ms, ${sums} group by u.account_id) each
     where stored_ms <> "storedMs" or upload_ms <> "uploadMs" order by account_id`,
    [],
    'usage-drifted',
  );
  return rows.map((row) => row.accountId);
}

async function correctSums(tx: Transaction, accountId: string): Promise<UsageDrift[]> {
  const before = await lockUsage(tx, accountId);
  const { rows } = await tx.query<{ storedMs: number; uploadMs: number }>(
    `select ${sums} where u.account_id = $1`,
    [accountId],
    'usage-sums',
  );
  const is = rows[0];
  if (is === undefined) return [];
  await tx.query(
    `update usage set stored_ms = $2, upload_ms = $3, updated_at = clock_timestamp() where account_id = $1`,
    [accountId, is.storedMs, is.uploadMs],
    'usage-correct',
  );
  const drifts: UsageDrift[] = [
    { accountId, kind: 'stored', wasMs: before.storedMs, isMs: is.storedMs },
    { accountId, kind: 'upload', wasMs: before.uploadMs, isMs: is.uploadMs },
  ];
  return drifts.filter(({ wasMs, isMs }) => wasMs !== isMs);
}
