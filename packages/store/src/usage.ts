import { usagePeriodAt } from '@millrace/domain';
import { type Transaction } from './db.ts';
import { limitingPlanId } from './plans.ts';

/** An account's use of its limits and the limits themselves. Milliseconds; null means no limit. */
export interface LockedUsage {
  accountId: string;
  periodStart: Date;
  periodEnd: Date;
  storedMs: number;
  uploadMs: number;
  watchedMs: number;
  planName: string;
  storedLimitMs: number | null;
  uploadLimitMs: number | null;
  maxSourceMs: number;
}

interface UsageRow extends LockedUsage {
  anchorDay: number;
  now: Date;
}

/**
 * Locks an account's usage row, making it when it is missing and beginning the next period when the old one is
 * over, by database time. Every limit is checked under this lock (contract LIM-104); it
 * comes after the video's row lock and before the job's.
 */
export async function lockUsage(tx: Transaction, accountId: string): Promise<LockedUsage> {
  const row = (await selectUsage(tx, accountId)) ?? (await insertUsage(tx, accountId));
  if (row.now < row.periodEnd) return row;
  const period = usagePeriodAt(row.anchorDay, row.now);
  await tx.query(
    `update usage set period_start = $2, period_end = $3, upload_ms = 0, watched_ms = 0,
       updated_at = clock_timestamp() where account_id = $1`,
    [accountId, period.start, period.end],
    'usage-begin-period',
  );
  return { ...row, periodStart: period.start, periodEnd: period.end, uploadMs: 0, watchedMs: 0 };
}

async function selectUsage(tx: Transaction, accountId: string): Promise<UsageRow | null> {
  const { rows } = await tx.query<UsageRow>(
    `select u.account_id as "accountId", u.period_start as "periodStart", u.period_end as "periodEnd",
       u.stored_ms as "storedMs", u.upload_ms as "uploadMs", u.watched_ms as "watchedMs",
       p.name as "planName", p.stored_seconds * 1000 as "storedLimitMs",
       p.upload_seconds_per_period * 1000 as "uploadLimitMs", p.max_source_seconds::bigint * 1000 as "maxSourceMs",
       a.anchor_day as "anchorDay", clock_timestamp() as now
     from usage u
     join accounts a on a.id = u.account_id
     join plans p on p.id = ${limitingPlanId}
     where u.account_id = $1 for update of u`,
    [accountId],
    'usage-lock',
  );
  return rows[0] ?? null;
}

async function insertUsage(tx: Transaction, accountId: string): Promise<UsageRow> {
  const { rows } = await tx.query<{ anchorDay: number; now: Date }>(
    'select anchor_day as "anchorDay", clock_timestamp() as now from accounts where id = $1',
    [accountId],
    'usage-anchor',
  );
  const account = rows[0];
  if (!account) throw new Error(`account ${accountId} does not exist`);
  const { start, end } = usagePeriodAt(account.anchorDay, account.now);
  await tx.query(
    `insert into usage (account_id, period_start, period_end, updated_at)
     values ($1, $2, $3, clock_timestamp()) on conflict do nothing`,
    [accountId, start, end],
    'usage-insert',
  );
  const row = await selectUsage(tx, accountId);
  if (!row) throw new Error(`usage of account ${accountId} vanished`);
  return row;
}

/** The limit that a video of this length does not fit under. */
export type ExceededLimit = 'stored' | 'upload' | 'source';

/**
 * Reserves a video's stored seconds and charges its upload seconds, or says which limit it would exceed and
 * changes nothing. A charge that still stands from an earlier encode is not made twice.
 */
export async function reserveEncode(
  tx: Transaction,
  usage: LockedUsage,
  { videoId, durationMs }: { videoId: string; durationMs: number },
): Promise<ExceededLimit | null> {
  const { rows } = await tx.query<{ kind: 'stored' | 'upload' }>(
    'select kind from usage_reservations where video_id = $1 and released_at is null',
    [videoId],
    'reservations-standing',
  );
  const standing = new Set(rows.map((row) => row.kind));
  const over = (used: number, limit: number | null): boolean => limit !== null && used + durationMs > limit;
  if (durationMs > usage.maxSourceMs) return 'source';
  if (!standing.has('stored') && over(usage.storedMs, usage.storedLimitMs)) return 'stored';
  if (!standing.has('upload') && over(usage.uploadMs, usage.uploadLimitMs)) return 'upload';
  const kinds = (['stored', 'upload'] as const).filter((kind) => !standing.has(kind));
  await tx.query(
    `insert into usage_reservations (video_id, kind, account_id, amount_ms, period_start, created_at)
     select $1, kind, $2, $3, $4, clock_timestamp() from unnest($5::text[]) kind
     on conflict (video_id, kind) do update set amount_ms = excluded.amount_ms,
       period_start = excluded.period_start, created_at = excluded.created_at, released_at = null`,
    [videoId, usage.accountId, durationMs, usage.periodStart, kinds],
    'reservations-add',
  );
  await tx.query(
    `update usage set stored_ms = stored_ms + $2, upload_ms = upload_ms + $3, updated_at = clock_timestamp()
     where account_id = $1`,
    [usage.accountId, kinds.includes('stored') ? durationMs : 0, kinds.includes('upload') ? durationMs : 0],
    'usage-reserve',
  );
  return null;
}
