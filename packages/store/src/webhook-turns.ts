import { type Queryable } from './db.ts';
import { type ClaimedDelivery, type WebhookWorker } from './webhook-claims.ts';

/** Who goes on with the endpoints whose attempts ended. */
export interface TurnRequest {
  worker: WebhookWorker;
  leaseMs: number;
}

/** An attempt that its receiver took. */
interface DeliveredAttempt {
  claim: Pick<ClaimedDelivery, 'claimId' | 'deliveryId' | 'endpointId'>;
  lastStatus: number | null;
}

/**
 * Ends claims as delivered and gives their slots to what waits longest at the same endpoints: one statement and one
 * commit for both, and no walk along all endpoints. Under load nearly everything is claimed so.
 *
 * Its locks are those of the walking claim, for the same reasons. What was ended by another since the snapshot is
 * gone under the lock on the claim. A rival that claimed the picked delivery in the endpoint's other slot since the
 * snapshot makes the statement fail by the unique delivery: the caller ends the claims without going on.
 */
const turnStatement = `
with result as (
  select * from unnest($1::bigint[], $2::text[], $3::text[], $4::integer[])
    as r (claim_id, endpoint_id, delivery_id, last_status)
), ended as materialized (
  select c.endpoint_id, c.slot, c.delivery_id, c.started_at, r.last_status
  from result r join webhook_claims c
    on c.endpoint_id = r.endpoint_id and c.id = r.claim_id and c.delivery_id = r.delivery_id
  for update of c
), recorded as (
  update webhook_deliveries d set
    attempts = d.attempts + 1, last_attempt_at = e.started_at, last_status = e.last_status, last_error = null,
    status = case when d.status = 'pending' then 'delivered' else d.status end, next_attempt_at = null
  from ended e where d.id = e.delivery_id
), vacant as (
  select endpoint_id, array_agg(slot) as slots from ended group by endpoint_id
), locked as materialized (
  select v.endpoint_id, v.slots, e.url, e.secret,
    array(select c.delivery_id from webhook_claims c where c.endpoint_id = v.endpoint_id) as busy
  from vacant v
  join webhook_breakers b on b.endpoint_id = v.endpoint_id and b.failures = 0
  join webhook_endpoints e on e.id = v.endpoint_id
  where e.deleted_at is null
  for share of e skip locked
), picked as materialized (
  select l.endpoint_id, l.slots[d.n] as slot, l.url, l.secret, d.*
  from locked l cross join lateral (
    select *, row_number() over (order by next_attempt_at) as n from (
      select d.id, d.event_id, d.attempts, d.redelivery_of, d.next_attempt_at, d.trace from webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id = l.endpoint_id
        and d.next_attempt_at <= clock_timestamp() and d.id <> all (l.busy)
      order by d.next_attempt_at limit cardinality(l.slots)
      for no key update of d skip locked
    ) due
  ) d
), renewed as (
  update webhook_claims c set id = default, delivery_id = p.id, worker = $5, boot = $6,
    started_at = clock_timestamp(), lease_until = clock_timestamp() + $7 * interval '1 millisecond'
  from picked p where c.endpoint_id = p.endpoint_id and c.slot = p.slot
  returning c.id as claim_id, p.*
), freed as (
  delete from webhook_claims c using ended e
  where c.endpoint_id = e.endpoint_id and c.slot = e.slot
    and (e.endpoint_id, e.slot) not in (select p.endpoint_id, p.slot from picked p)
)
select r.claim_id::text as "claimId", r.id as "deliveryId", r.endpoint_id as "endpointId",
  r.event_id as "eventId", v.type as "eventType", r.attempts, r.redelivery_of is not null as redelivery,
  r.url, r.secret, v.body, 0 as failures, r.trace,
  extract(epoch from clock_timestamp() - r.next_attempt_at)::float8 * 1000 as "overdueMs"
from renewed r join events v on v.id = r.event_id`;

/**
 * Records attempts that delivered at endpoints which answer well, and claims what is due there next.
 * @throws a unique violation when a rival claimed the same; nothing is recorded then
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
      results.map(({ claim }) => claim.deliveryId),
      results.map(({ lastStatus }) => lastStatus),
      ...[worker.name, worker.boot, leaseMs],
    ],
    'webhook-turn',
  );
  return rows;
}
