import { type PlaybackUsageMessage } from '@millrace/contract';
import { joinSegments } from '@millrace/domain';
import { type Database, type Transaction } from './db.ts';
import { eachOfPages } from './each.ts';
import { joinPlan } from './plans.ts';
import { publishAccountState } from './playback-state.ts';
import { lockUsage } from './usage.ts';

type View = PlaybackUsageMessage['views'][number];

/** What came of a batch of watched time. */
export interface WatchedTime {
  /** Milliseconds that were new, and count in the current period. */
  countedMs: number;
  /** The account has come to its limit with this batch. */
  limitReached: boolean;
}

/**
 * Counts watched time, each segment of a view once (contract MET-005). Safe to repeat, and in any order. Segments
 * watched before the current period began were that period's: they are remembered and no longer counted.
 * @returns null for an account that is gone
 */
export async function countWatchedTime(
  tx: Transaction,
  { accountId, views }: Pick<PlaybackUsageMessage, 'accountId' | 'views'>,
): Promise<WatchedTime | null> {
  const { rowCount } = await tx.query('select from accounts where id = $1', [accountId], 'watched-account');
  if (rowCount === 0) return null;
  // The account's lock orders batches that hold the same views.
  const usage = await lockUsage(tx, accountId);
  const known = await readSegments(tx, views);
  let countedMs = 0;
  for (const view of views) {
    const key = keyOf(view);
    const { bitmap, newMs } = joinSegments(known.get(key)?.bitmap ?? Buffer.alloc(0), view.segments);
    known.set(key, { view, bitmap });
    if (new Date(view.at) >= usage.periodStart) countedMs += newMs;
  }
  await writeSegments(tx, accountId, [...known.values()]);
  if (countedMs === 0) return { countedMs, limitReached: false };
  await tx.query(
    'update usage set watched_ms = watched_ms + $2, updated_at = clock_timestamp() where account_id = $1',
    [accountId, countedMs],
    'watched-add',
  );
  return { countedMs, limitReached: await settleWatchLimit(tx, accountId) };
}

interface Counted {
  view: Pick<View, 'tokenHash' | 'ipHash' | 'videoId'>;
  bitmap: Buffer;
}

const keyOf = ({ tokenHash, ipHash, videoId }: Counted['view']): string =>
  `${tokenHash} ${ipHash} ${videoId}`;

async function readSegments(tx: Transaction, views: readonly View[]): Promise<Map<string, Counted>> {
  const { rows } = await tx.query<Counted['view'] & { bitmap: Buffer }>(
    `select v.token_hash as "tokenHash", v.ip_hash as "ipHash", v.video_id as "videoId", v.segments as bitmap
     from playback_views v
     join (select distinct * from unnest($1::text[], $2::text[], $3::text[])) as w (token_hash, ip_hash, video_id)
       using (token_hash, ip_hash, video_id)`,
    [views.map((v) => v.tokenHash), views.map((v) => v.ipHash), views.map((v) => v.videoId)],
    'watched-read',
  );
  return new Map(rows.map(({ bitmap, ...view }) => [keyOf(view), { view, bitmap }]));
}

async function writeSegments(tx: Transaction, accountId: string, counted: readonly Counted[]): Promise<void> {
  await tx.query(
    `insert into playback_views (token_hash, ip_hash, video_id, account_id, segments, updated_at)
     select token_hash, ip_hash, video_id, $1, segments, clock_timestamp()
     from unnest($2::text[], $3::text[], $4::text[], $5::bytea[])
       as w (token_hash, ip_hash, video_id, segments)
     on conflict (token_hash, ip_hash, video_id) do update set segments = excluded.segments,
       updated_at = excluded.updated_at`,
    [
      accountId,
      counted.map(({ view }) => view.tokenHash),
      counted.map(({ view }) => view.ipHash),
      counted.map(({ view }) => view.videoId),
      counted.map(({ bitmap }) => bitmap),
    ],
    'watched-write',
  );
}

/** Whether an account's usage `u` has come to the watched minutes of its plan `pl`. */
const isOver = 'coalesce(u.watched_ms >= pl.watched_minutes_per_period * 60000, false)';

/**
 * Brings the account's mark of being over its watch limit in line with its usage and its plan, and tells the CDN
 * when it changed. To be called under the account's usage lock.
 * @returns whether it is over the limit since now
 */
async function settleWatchLimit(tx: Transaction, accountId: string): Promise<boolean> {
  const { rows } = await tx.query<{ over: boolean }>(
    `with state as (
       select a.id, ${isOver} as over
       from accounts a
       join usage u on u.account_id = a.id
       ${joinPlan}
       where a.id = $1
     )
     update accounts a set over_watch_limit = state.over from state
     where a.id = state.id and a.over_watch_limit <> state.over
     returning state.over`,
    [accountId],
    'watched-limit',
  );
  const changed = rows[0];
  if (changed === undefined) return false;
  await publishAccountState(tx, accountId);
  return changed.over;
}

/**
 * Accounts whose mark is not what their usage says — after a change of the plan or of its limits — or whose period
 * is over: the next one is begun and the CDN told. For the reconciler.
 * @returns how many were put right
 */
export async function reconcileWatchLimits(
  db: Database,
  { signal, limit = 500 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      `select a.id from accounts a
       join usage u on u.account_id = a.id
       ${joinPlan}
       where (u.period_end <= clock_timestamp() or a.over_watch_limit <> ${isOver}) and a.id > $2
       order by a.id limit $1`,
      [limit, after],
      'watched-limits-wrong',
    );
    return rows;
  };
  const settle = ({ id }: { id: string }): Promise<number> =>
    db.transaction(async (tx) => {
      await lockUsage(tx, id);
      await settleWatchLimit(tx, id);
      return 1;
    });
  // On the first of a month many begin their period.
  return eachOfPages(page, settle, { atOnce: 4, signal });
}
