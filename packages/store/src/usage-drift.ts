import { type Database, type Queryable, type Transaction } from './db.ts';
import { eachInTurn, eachOfPages } from './each.ts';
import { type LockedUsage, lockUsage } from './usage.ts';

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
 *
 * @param options.onDrift called for each that was put right, whatever becomes of other accounts
 * @param options.limit how many accounts are looked at by one statement
 * @throws AggregateError after all the rest, when some accounts could not be put right
 */
export async function correctUsageDrift(
  db: Database,
  {
    onDrift,
    signal,
    limit = 100,
  }: { onDrift: (drift: UsageDrift) => void; signal?: AbortSignal; limit?: number },
): Promise<void> {
  /** All accounts, in portions that one statement looks at. */
  const page = async (after: string): Promise<{ id: string; accountIds: string[] }[]> => {
    const { rows } = await db.query<{ id: string }>(
      'select id from accounts where id > $1 order by id limit $2',
      [after, limit],
      'usage-accounts',
    );
    const last = rows.at(-1);
    return last === undefined ? [] : [{ id: last.id, accountIds: rows.map(({ id }) => id) }];
  };
  const correct = async (accountId: string): Promise<number> => {
    const drifts = await db
      .transaction((tx) => correctAccount(tx, accountId))
      .catch((cause: unknown) => {
        throw new Error(`the usage of ${accountId} could not be put right`, { cause });
      });
    for (const drift of drifts) onDrift(drift);
    return drifts.length;
  };
  await eachOfPages(
    page,
    async ({ accountIds }) => {
      // Where one cannot be read, each is looked at by itself: what is right is left as it is.
      const drifted = await driftedAccounts(db, accountIds).catch(() => accountIds);
      return eachInTurn(drifted, correct, { signal });
    },
    { signal },
  );
}

async function correctAccount(tx: Transaction, accountId: string): Promise<UsageDrift[]> {
  await releaseStrays(tx, accountId);
  const videoIds = await lockUnlike(tx, accountId);
  const usage = await lockUsage(tx, accountId);
  return [...(await correctReservations(tx, usage, videoIds)), ...(await correctSums(tx, usage))];
}

/** Accounts of which something is not as it should be, as it looks without a lock. */
async function driftedAccounts(db: Queryable, accountIds: readonly string[]): Promise<string[]> {
  // Not by `exists` for each account: where few of many have videos, each would be a walk through all of them.
  const { rows } = await db.query<{ id: string }>(
    `select account_id as id from (${strays}) s
     union select "accountId" from (${unlike}) u
     union select account_id from (
       select u.account_id, u.stored_ms, u.upload_ms, ${sums} group by u.account_id) each
     where stored_ms <> "storedMs" or upload_ms <> "uploadMs" order by id`,
    [accountIds],
    'usage-drifted',
  );
  return rows.map(({ id }) => id);
}

/** Videos of the accounts $1 that hold seconds though they are deleted or failed. */
const strays = `
  select r.account_id, v.id from usage_reservations r join videos v on v.id = r.video_id
  where r.account_id = any ($1) and r.kind = 'stored' and r.released_at is null
    and (v.deleted_at is not null or v.status = 'failed')`;

/**
 * Ends reservations that outlived their video; what they were in sums is found and told as the sums' drift. The videos
 * are locked: one that is tried again reserves anew.
 */
async function releaseStrays(tx: Transaction, accountId: string): Promise<void> {
  await tx.query(
    `with strays as (${strays} for update of v skip locked)
     update usage_reservations r set released_at = clock_timestamp() from strays s
     where r.video_id = s.id and r.kind = 'stored' and r.released_at is null`,
    [[accountId]],
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
 * Reservations of videos of the accounts $1 that were planned, or play, which do not stand or are not as long as what was
 * measured. What plays is as long as what was planned but for a part of a frame: manifests, which are large, are read
 * only of those that differ. An upload counts in one period, so a lost charge of an earlier one is of no interest.
 */
const unlike = `
  select v.account_id as "accountId", v.id as "videoId", k.kind,
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
  where v.account_id = any ($1) and v.deleted_at is null and v.status in ('processing', 'ready', 'held')
    and (k.kind = 'stored' or r.video_id is not null or j.created_at >= u.period_start)
    and measured.ms is not null and r.amount_ms is distinct from measured.ms`;

/** Locks the videos whose reservations are unlike; one that somebody has is left for the next run. */
async function lockUnlike(tx: Transaction, accountId: string): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from videos where id in (select "videoId" from (${unlike}) found)
     order by id for no key update skip locked`,
    [[accountId]],
    'usage-lock-videos',
  );
  return rows.map(({ id }) => id);
}

/** Looks again at the locked videos, under the account's lock. */
async function correctReservations(
  tx: Transaction,
  { accountId, periodStart }: LockedUsage,
  videoIds: readonly string[],
): Promise<UsageDrift[]> {
  const { rows: drifts } = await tx.query<UnlikeReservation>(
    `${unlike} and v.id = any ($2) order by v.id, k.kind`,
    [[accountId], videoIds],
    'usage-unlike-reservations',
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
        drifts.map(({ videoId }) => videoId),
        drifts.map(({ kind }) => kind),
        drifts.map(({ isMs }) => isMs),
      ],
    ],
    'usage-correct-reservations',
  );
  return drifts;
}

/** What the standing reservations of each account `u` of $1 add up to. */
const sums = `
  coalesce(sum(r.amount_ms) filter (where r.kind = 'stored'), 0)::bigint as "storedMs",
  coalesce(sum(r.amount_ms) filter (where r.kind = 'upload' and r.period_start = u.period_start), 0)::bigint
    as "uploadMs"
  from usage u left join usage_reservations r on r.account_id = u.account_id and r.released_at is null
  where u.account_id = any ($1)`;

async function correctSums(tx: Transaction, { accountId, ...was }: LockedUsage): Promise<UsageDrift[]> {
  const { rows } = await tx.query<{ storedMs: number; uploadMs: number }>(
    `select ${sums}`,
    [[accountId]],
    'usage-sums',
  );
  const { storedMs, uploadMs } = rows[0] ?? was;
  const drifts: UsageDrift[] = [
    { accountId, kind: 'stored' as const, wasMs: was.storedMs, isMs: storedMs },
    { accountId, kind: 'upload' as const, wasMs: was.uploadMs, isMs: uploadMs },
  ].filter(({ wasMs, isMs }) => wasMs !== isMs);
  if (drifts.length > 0)
    await tx.query(
      `update usage set stored_ms = $2, upload_ms = $3, updated_at = clock_timestamp() where account_id = $1`,
      [accountId, storedMs, uploadMs],
      'usage-correct',
    );
  return drifts;
}
