import { type Queryable } from './db.ts';
import { claimColumns, type ClaimedDelivery, nextDue, type WebhookWorker } from './webhook-claims.ts';

/** Who goes on with the endpoints whose attempts ended. */
export interface TurnRequest {
  worker: WebhookWorker;
  leaseMs: number;
}

/** An attempt that its receiver took. */
interface DeliveredAttempt {
  claim: Pick<ClaimedDelivery, 'claimId' | 'endpointId'>;
  lastStatus: number | null;
}

/**
 * Ends claims as delivered and gives their slots to what waits longest at the same endpoints: one statement and one
 * commit for both, and no walk along all endpoints. Under load nearly everything is claimed so.
 *
 * Its locks are those of the walking claim, for the same reasons. What was ended by another since the snapshot is
 * gone under the lock on the claim.
 */
const turnStatement = `
with result as (
  select * from unnest($1::bigint[], $2::text[], $3::integer[]) as r (claim_id, endpoint_id, last_status)
), ended as materialized (
  select c.endpoint_id, c.slot, c.delivery_id, c.started_at, r.last_status
  from result r join webhook_claims c
    on c.endpoint_id = r.endpoint_id and c.id = r.claim_id
  for update of c
), recorded as (
  update webhook_deliveries d set
    attempts = d.attempts + 1, last_attempt_at = e.started_at, last_status = e.last_status, last_error = null,
    status = case when d.status = 'pending' then 'delivered' else d.status end, next_attempt_at = null
  from ended e where d.id = e.delivery_id
), vacant as (
  select endpoint_id, array_agg(slot) as slots from ended group by endpoint_id
), locked as materialized (
  select v.endpoint_id, v.slots, e.url, e.secret
  from vacant v
  join webhook_breakers b on b.endpoint_id = v.endpoint_id and b.failures = 0
  join webhook_endpoints e on e.id = v.endpoint_id
  where e.deleted_at is null
  for share of e skip locked
), picked as materialized (
  select l.endpoint_id, l.slots[q.n] as slot, l.url, l.secret, q.*
  from locked l cross join lateral (
    ${nextDue('cardinality(l.slots)')}
  ) q
), taken as (
  delete from webhook_queue q using picked p where q.ctid = p.place
), renewed as (
  update webhook_claims c set id = default, due_at = p.due_at, delivery_id = p.delivery_id, event_id = p.event_id,
    attempts = p.attempts, redelivery = p.redelivery, trace = p.trace, worker = $4, boot = $5,
    started_at = clock_timestamp(), lease_until = clock_timestamp() + $6 * interval '1 millisecond'
  from picked p where c.endpoint_id = p.endpoint_id and c.slot = p.slot
  returning c.*, p.url, p.secret
), freed as (
  delete from webhook_claims c using ended e
  where c.endpoint_id = e.endpoint_id and c.slot = e.slot
    and (e.endpoint_id, e.slot) not in (select p.endpoint_id, p.slot from picked p)
)
select ${claimColumns}, 0 as failures from renewed c join events v on v.id = c.event_id`;

/**
 * Records attempts that delivered at endpoints which answer well, and claims what is due there next.
 */
export async function takeTurns(
  db: Queryable,
  results: readonly DeliveredAttempt[],
  { worker, leaseMs }: TurnRequest,
): Promise<ClaimedDelivery[]> {
  const { rows } = await db.query<ClaimedDelivery>(
    turnStatement,
    [
      results.map(({ claim }) => claim.claimId),
      results.map(({ claim }) => claim.endpointId),
      results.map(({ lastStatus }) => lastStatus),
      ...[worker.name, worker.boot, leaseMs],
    ],
    'webhook-turn',
  );
  return rows;
}
