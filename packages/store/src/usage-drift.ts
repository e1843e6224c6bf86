import { type Database, type Queryable, type Transaction } from './db.ts';
import { lockUsage } from './usage.ts';

/** A sum that was not what its reservations say; milliseconds. */
export interface UsageDrift {
  accountId: string;
  kind: 'stored' | 'upload';
  wasMs: number;
  isMs: number;
}

/** What the standing reservations of an account `u` add up to. */
const sums = `
  (select coalesce(sum(r.amount_ms), 0) from usage_reservations r
   where r.account_id = u.account_id and r.kind = 'stored' and r.released_at is null)::bigint as "storedMs",
  (select coalesce(sum(r.amount_ms), 0) from usage_reservations r
   where r.account_id = u.account_id and r.kind = 'upload' and r.released_at is null
     and r.period_start = u.period_start)::bigint as "uploadMs"`;

/** Accounts whose sums differ from their reservations; a reservation and its sum change in one transaction. */
async function driftedAccounts(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from (select u.account_id, u.stored_ms, u.upload_ms, ${sums} from usage u) each
     where stored_ms <> "storedMs" or upload_ms <> "uploadMs" order by account_id`,
    [],
    'usage-drifted',
  );
  return rows.map((row) => row.accountId);
}

/**
 * Recomputes every account's stored and upload seconds from the record and puts right what differs: seconds that a
 * video holds though it is deleted or failed, and sums that are not what reservations say. Nothing should: each drift
 * is a fault to be looked into.
 */
export async function correctUsageDrift(db: Database): Promise<UsageDrift[]> {
  await releaseStrays(db);
  const drifts: UsageDrift[] = [];
  for (const accountId of await driftedAccounts(db)) {
    drifts.push(...(await db.transaction((tx) => correct(tx, accountId))));
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

async function correct(tx: Transaction, accountId: string): Promise<UsageDrift[]> {
  const before = await lockUsage(tx, accountId);
  const { rows } = await tx.query<{ storedMs: number; uploadMs: number }>(
    `select ${sums} from usage u where u.account_id = $1`,
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
