import { breakerPause } from '@millrace/domain';
import { type Transaction } from './db.ts';

/** A breaker that opened or closed. */
export interface BreakerChange {
  endpointId: string;
  /** In a row. */
  failures: number;
  open: boolean;
}

/** An attempt, as far as breakers care. */
export interface EndedAttempt {
  /** With the failures in a row before it; null when nothing was known. */
  claim: { endpointId: string; failures: number | null };
  status: 'delivered' | 'pending' | 'failed';
  /** How long it took, in milliseconds. */
  durationMs: number;
}

/** What a batch of attempts says of one endpoint, in the order in which they ended. */
interface BreakerNews {
  endpointId: string;
  succeeded: boolean;
  /** Since the last success among them. */
  failures: number;
  /** The longest of these failures, in milliseconds. */
  slowestMs: number;
}

/** What results mean for breakers; nothing for an endpoint that goes on answering well. */
export function breakerNews(results: readonly EndedAttempt[]): BreakerNews[] {
  const byEndpoint = new Map<string, BreakerNews>();
  const unchanged = new Set<string>();
  for (const { claim, status, durationMs } of results) {
    const { endpointId } = claim;
    const news = byEndpoint.get(endpointId) ?? { endpointId, succeeded: false, failures: 0, slowestMs: 0 };
    byEndpoint.set(endpointId, news);
    if (status === 'delivered') {
      if (news.failures === 0 && !news.succeeded && claim.failures === 0) unchanged.add(endpointId);
      Object.assign(news, { succeeded: true, failures: 0, slowestMs: 0 });
    } else {
      unchanged.delete(endpointId);
      news.failures += 1;
      news.slowestMs = Math.max(news.slowestMs, durationMs);
    }
  }
  return [...byEndpoint.values()].filter(({ endpointId }) => !unchanged.has(endpointId));
}

/** Writes what attempts mean for their endpoints' breakers, in an order that two writers share. */
export async function keepBreakers(tx: Transaction, news: readonly BreakerNews[]): Promise<BreakerChange[]> {
  if (news.length === 0) return [];
  const ordered = [...news].sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
  const ids = ordered.map(({ endpointId }) => endpointId);
  // The row must be there before it can be locked.
  await tx.query(
    `insert into webhook_breakers (endpoint_id) select unnest($1::text[]) on conflict do nothing`,
    [ids],
    'webhook-breaker-begin',
  );
  const { rows } = await tx.query<{ endpointId: string; failures: number; open: boolean }>(
    `select endpoint_id as "endpointId", failures, open_until is not null as open from webhook_breakers
     where endpoint_id = any ($1) order by endpoint_id for no key update`,
    [ids],
    'webhook-breaker-lock',
  );
  const before = new Map(rows.map((row) => [row.endpointId, row]));
  const after = ordered.map(({ endpointId, succeeded, failures, slowestMs }) => {
    const streak = (succeeded ? 0 : (before.get(endpointId)?.failures ?? 0)) + failures;
    return { endpointId, failures: streak, pauseMs: breakerPause(streak, slowestMs) };
  });
  await tx.query(
    `update webhook_breakers b set failures = n.failures,
       open_until = clock_timestamp() + n.pause_ms * interval '1 millisecond'
     from unnest($1::text[], $2::integer[], $3::float8[]) as n (endpoint_id, failures, pause_ms)
     where b.endpoint_id = n.endpoint_id`,
    [ids, after.map(({ failures }) => failures), after.map(({ pauseMs }) => pauseMs)],
    'webhook-breaker-write',
  );
  return after.flatMap(({ endpointId, failures, pauseMs }) => {
    const open = pauseMs !== null;
    return open === (before.get(endpointId)?.open ?? false) ? [] : [{ endpointId, failures, open }];
  });
}
