import { type Database, type Queryable } from './db.ts';
import { type BreakerChange, breakerNews, type EndedAttempt, keepBreakers } from './webhook-breakers.ts';
import { type ClaimedDelivery, requeue } from './webhook-claims.ts';
import { takeTurns, type TurnRequest } from './webhook-turns.ts';

/** How an attempt ended, and what follows from it. */
export interface AttemptResult extends EndedAttempt {
  claim: Pick<ClaimedDelivery, 'claimId' | 'deliveryId' | 'endpointId' | 'failures'>;
  /** The answer's HTTP status; null when none came. */
  lastStatus: number | null;
  lastError: string | null;
  /** Until the next attempt, for `pending`; milliseconds. */
  waitMs: number | null;
}

/**
 * One statement for all: ends the claims and writes what came of them. A claim that is gone was taken over after
 * its lease; its result changes nothing, so that writing the same results again does not either.
 */
const finishStatement = `
with result as (
  select * from unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::float8[])
    as r (claim_id, endpoint_id, status, last_status, last_error, wait_ms)
), ended as (
  delete from webhook_claims c using result r where c.endpoint_id = r.endpoint_id and c.id = r.claim_id
  returning c.id, c.delivery_id, c.redelivery, c.trace, c.started_at, r.status, r.last_status, r.last_error, r.wait_ms
), recorded as (
  update webhook_deliveries d set
    attempts = d.attempts + 1, last_attempt_at = e.started_at, last_status = e.last_status,
    last_error = e.last_error,
    status = case when d.status = 'pending' then e.status else d.status end,
    next_attempt_at = case when d.status = 'pending'
      then clock_timestamp() + e.wait_ms * interval '1 millisecond' end
  from ended e
  where d.id = e.delivery_id
  returning d.id, d.endpoint_id, d.event_id, d.attempts, e.redelivery, e.trace, d.next_attempt_at
), requeued as (${requeue}
)
select id::text as "claimId" from ended`;

/** What came of recording attempts. */
interface Recorded {
  /** The breakers that opened or closed. */
  changes: BreakerChange[];
  /** What this worker goes on with. */
  next: ClaimedDelivery[];
  /** Whether slots were freed without a look at what waits for them. */
  vacated: boolean;
}

/**
 * Records how attempts ended, and keeps their endpoints' breakers. Slots of endpoints that answer well go to what waits
 * there, if the worker goes on; the others are freed.
 * @param goOn null: nothing is claimed
 */
export async function finishAttempts(
  db: Database,
  results: readonly AttemptResult[],
  goOn: TurnRequest | null = null,
): Promise<Recorded> {
  const news = new Set(breakerNews(results).map(({ endpointId }) => endpointId));
  const isCalm = ({ claim }: AttemptResult): boolean => !news.has(claim.endpointId);
  const calm = goOn === null ? [] : results.filter(isCalm);
  const next = goOn === null || calm.length === 0 ? [] : await takeTurns(db, calm, goOn);
  const rest = goOn === null ? results : results.filter((result) => !isCalm(result));
  const changes = rest.length === 0 ? [] : await finishOnly(db, rest);
  return { changes, next, vacated: rest.length > 0 };
}

async function finishOnly(db: Database, results: readonly AttemptResult[]): Promise<BreakerChange[]> {
  if (breakerNews(results).length === 0) {
    await endClaims(db, results);
    return [];
  }
  return db.transaction(async (tx) => {
    const ended = await endClaims(tx, results);
    return keepBreakers(tx, breakerNews(results.filter(({ claim }) => ended.has(claim.claimId))));
  });
}

async function endClaims(db: Queryable, results: readonly AttemptResult[]): Promise<Set<string>> {
  const { rows } = await db.query<{ claimId: string }>(
    finishStatement,
    [
      results.map(({ claim }) => claim.claimId),
      results.map(({ claim }) => claim.endpointId),
      results.map(({ status }) => status),
      results.map(({ lastStatus }) => lastStatus),
      results.map(({ lastError }) => lastError),
      results.map(({ waitMs }) => waitMs),
    ],
    'webhook-finish',
  );
  return new Set(rows.map((row) => row.claimId));
}
