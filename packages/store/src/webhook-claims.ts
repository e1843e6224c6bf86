import { type Queryable } from './db.ts';

/** A delivery that this worker attempts now: it has one of its endpoint's two slots, under a lease. */
export interface ClaimedDelivery {
  /** The fence: what ends an attempt names its claim, so that an older one ends nothing. As text: only sent back. */
  claimId: string;
  deliveryId: string;
  endpointId: string;
  eventId: string;
  eventType: string;
  /** Attempts recorded before this one. */
  attempts: number;
  /** Sent again because the customer asked for it. */
  redelivery: boolean;
  url: string;
  /** The signing secret as the record keeps it, encrypted. */
  secret: string;
  /** The event as JSON, whose bytes are UTF-8: as text, which comes from the record in half the time. */
  body: string;
  /** Failures in a row at the endpoint before this attempt; null when nothing is known of it. */
  failures: number | null;
  /** How long it was due, in milliseconds. */
  overdueMs: number;
  /** Trace context of what queued it, as headers; null when that was not traced. */
  trace: Record<string, string> | null;
}

export interface ClaimRequest {
  worker: WebhookWorker;
  leaseMs: number;
  /** Look at endpoints behind this one, in the order of their ids; empty: from the first. */
  after: string;
  /** How many deliveries to claim at most. */
  limit: number;
  /** How many of them may go to endpoints of which nothing good is known. */
  doubtfulLimit: number;
}

/** A process that delivers. `boot` tells its runs apart, so that what an earlier one left is free at once. */
export interface WebhookWorker {
  name: string;
  boot: string;
}

export interface Claims {
  deliveries: ClaimedDelivery[];
  /** Where the next look begins. */
  after: string;
  /** Whether endpoints behind `after` were not looked at. */
  more: boolean;
  /** When something that was seen falls due, in milliseconds from now; null when nothing does. */
  dueInMs: number | null;
}

/** A claim as both statements that claim return it; of `c`, with its endpoint's URL and secret, and the event `v`. */
export const claimColumns = `c.id::text as "claimId", c.delivery_id as "deliveryId", c.endpoint_id as "endpointId",
  c.event_id as "eventId", v.type as "eventType", c.attempts, c.redelivery, c.trace, c.url, c.secret,
  convert_from(v.body, 'UTF8') as body,
  extract(epoch from clock_timestamp() - c.due_at)::float8 * 1000 as "overdueMs"`;

/** What moves between the queue and the claims. */
const queueColumns = 'endpoint_id, due_at, delivery_id, event_id, attempts, redelivery, trace';

/**
 * What is due next at the endpoint of `l`, numbered from 1, and where it stands in the queue. It stays locked; what a
 * rival has locked is passed over.
 * @param most how many at most, as SQL
 */
export const nextDue = (most: string): string => `
    select *, row_number() over (order by due_at) as n from (
      select q.ctid as place, q.due_at, q.delivery_id, q.event_id, q.attempts, q.redelivery, q.trace
      from webhook_queue q
      where q.endpoint_id = l.endpoint_id and q.due_at <= clock_timestamp()
      order by q.due_at limit ${most}
      for update skip locked
    ) due`;

/** Endpoints looked at in one claim: bounds its time, whatever waits. */
const visits = 500;

/**
 * Endpoints are walked in the order of their ids from where the last claim ended, each for a few index look-ups
 * however long its queue, so that none waits behind another's queue. The primary key of `webhook_claims` keeps an
 * endpoint at two attempts over all workers: of two claims at the same time one inserts nothing.
 *
 * A delivery that waits is a row of the queue: taking it out makes the claim the only one, and the lock passes over
 * what a rival takes. The lock on the endpoint makes a rotation exact: either the rotation sees this claim, or the
 * claim the new secret.
 *
 * `begun` is a join by sorting: the planner expects one row of either side, and would compare each with each.
 * `busy` is read whole, being as small as what is in flight: a plan made while it is empty stays a good one.
 */
const claimStatement = `
with recursive walk (endpoint_id, step) as (
  (select endpoint_id, 1 from webhook_queue where endpoint_id > $1 order by endpoint_id limit 1)
  union all
  select (select q.endpoint_id from webhook_queue q where q.endpoint_id > w.endpoint_id
          order by q.endpoint_id limit 1), w.step + 1
  from walk w where w.endpoint_id is not null and w.step < ${visits}
), busy as materialized (
  select endpoint_id, array_agg(slot) as slots from webhook_claims group by endpoint_id
), roomy as materialized (
  select w.endpoint_id, w.step, b.failures, b.open_until, b.failures is distinct from 0 as doubtful,
    coalesce(busy.slots, '{}') as slots,
    case when b.failures = 0 then 2 else 1 end - coalesce(cardinality(busy.slots), 0) as room
  from walk w
  left join webhook_breakers b on b.endpoint_id = w.endpoint_id
  left join busy on busy.endpoint_id = w.endpoint_id
  where case when b.failures = 0 then 2 else 1 end > coalesce(cardinality(busy.slots), 0)
), seen as materialized (
  select r.*, greatest(head.due_at, r.open_until) as due_at
  from roomy r cross join lateral (
    select q.due_at from webhook_queue q where q.endpoint_id = r.endpoint_id order by q.due_at limit 1
  ) head
), open as (
  select * from seen where due_at <= clock_timestamp()
), admitted as (
  select * from (
    select *, sum(room) over (order by step) as total from (
      select *, sum(room) over (partition by doubtful order by step) as of_kind from open
    ) counted where not doubtful or of_kind <= $3
  ) summed where total <= $2
), locked as materialized (
  select a.*, e.url, e.secret
  from admitted a join webhook_endpoints e on e.id = a.endpoint_id
  where e.deleted_at is null
  for share of e skip locked
), picked as materialized (
  select l.endpoint_id, q.*, (array_remove(array_remove(array[1, 2], l.slots[1]), l.slots[2]))[q.n] as slot
  from locked l cross join lateral (
    ${nextDue('l.room')}
  ) q
), claimed as (
  insert into webhook_claims (${queueColumns}, slot, worker, boot, started_at, lease_until)
  select ${queueColumns}, slot, $4, $5, clock_timestamp(), clock_timestamp() + $6 * interval '1 millisecond'
  from picked
  on conflict do nothing
  returning *
), taken as (
  delete from webhook_queue q using claimed c
  where q.endpoint_id = c.endpoint_id and q.due_at = c.due_at and q.delivery_id = c.delivery_id
), begun as (
  select * from (
    select id, ${queueColumns}, max(url) over of_endpoint as url, max(secret) over of_endpoint as secret, max(failures) over of_endpoint as failures
    from (
      select id, ${queueColumns}, null as url, null as secret, null as failures from claimed
      union all
      select null, endpoint_id, null, null, null, null, null, null, url, secret, failures from locked
    ) both_of window of_endpoint as (partition by endpoint_id)
  ) joined where id is not null
), summary as (
  select
    coalesce((select max(endpoint_id) from admitted
              where (select count(*) from admitted) < (select count(*) from open)),
             (select endpoint_id from walk where step = ${visits})) as cut,
    extract(epoch from min(due_at) filter (where due_at > clock_timestamp()) - clock_timestamp()) * 1000 as due_in_ms
  from seen
)
select s.cut, s.due_in_ms::float8 as "dueInMs", ${claimColumns}, c.failures
from summary s
left join (begun c join events v on v.id = c.event_id) on true`;

interface ClaimRow extends ClaimedDelivery {
  cut: string | null;
  dueInMs: number | null;
}

/** Claims deliveries that are due, at most two of an endpoint at once and one while it is in doubt. */
export async function claimDeliveries(db: Queryable, request: ClaimRequest): Promise<Claims> {
  const { worker, leaseMs, after, limit, doubtfulLimit } = request;
  const { rows } = await db.query<ClaimRow>(
    claimStatement,
    [after, limit, doubtfulLimit, worker.name, worker.boot, leaseMs],
    'webhook-claim',
  );
  const cut = rows[0]?.cut ?? null;
  return {
    // Without a claim the one row has nulls.
    deliveries: rows.filter((row) => (row.claimId as string | null) !== null),
    after: cut ?? '',
    more: cut !== null,
    dueInMs: rows[0]?.dueInMs ?? null,
  };
}

/** Queues again what was `recorded` and is still pending; part of the statements that end claims. */
export const requeue = `
  insert into webhook_queue (${queueColumns})
  select endpoint_id, next_attempt_at, id, event_id, attempts, redelivery, trace from recorded
  where next_attempt_at is not null`;

/** Gives back attempts that were not begun: they are due as before, and not counted. */
export async function releaseClaims(
  db: Queryable,
  claims: readonly Pick<ClaimedDelivery, 'claimId'>[],
): Promise<void> {
  await db.query(
    `with released as (
       delete from webhook_claims where id = any ($1::bigint[])
       returning ${queueColumns}
     )
     insert into webhook_queue (${queueColumns})
     select r.* from released r join webhook_deliveries d on d.id = r.delivery_id and d.status = 'pending'`,
    [claims.map(({ claimId }) => claimId)],
    'webhook-release',
  );
}

/**
 * Takes over what is in flight with nobody: claims whose lease has run out, and those of earlier runs of this worker.
 * Such an attempt may have reached its receiver, so it counts; it is made again at once. What this worker `holds` it
 * never takes over, since what it could not record yet it knows better. A claim of its own that it does not hold is one
 * whose answer was lost on the way, or that could not be given back.
 * @param holds the ids of the claims that are not settled
 * @returns how many deliveries that were
 */
export async function takeOverClaims(
  db: Queryable,
  worker: WebhookWorker,
  holds: readonly string[],
): Promise<number> {
  const { rowCount } = await db.query(
    `with lost as (
       delete from webhook_claims
       where (lease_until < clock_timestamp() or (worker = $1 and boot <> $2)) and id <> all ($3::bigint[])
       returning *
     ), recorded as (
       update webhook_deliveries d set attempts = d.attempts + 1, last_attempt_at = l.started_at,
         last_status = null, last_error = 'interrupted: whether it arrived is not known',
         next_attempt_at = case when d.status = 'pending' then clock_timestamp() end
       from lost l where d.id = l.delivery_id
       returning d.id, d.endpoint_id, d.event_id, d.attempts, l.redelivery, l.trace, d.next_attempt_at
     ), requeued as (
       ${requeue}
     )
     select from lost`,
    [worker.name, worker.boot, holds],
    'webhook-take-over',
  );
  return rowCount;
}

/**
 * What waits, for metrics: since when the oldest delivery is due whose endpoint does not keep failing, in seconds,
 * and how many endpoints keep failing. Two index look-ups for each endpoint that has something waiting.
 */
export async function webhookBacklog(
  db: Queryable,
): Promise<{ oldestDueSeconds: number; openBreakers: number }> {
  const { rows } = await db.query<{ oldestDueSeconds: number; openBreakers: number }>(
    `with recursive walk (endpoint_id) as (
       (select endpoint_id from webhook_queue order by endpoint_id limit 1)
       union all
       select (select q.endpoint_id from webhook_queue q where q.endpoint_id > w.endpoint_id
               order by q.endpoint_id limit 1)
       from walk w where w.endpoint_id is not null
     )
     select greatest(coalesce(extract(epoch from clock_timestamp() - min(head.due_at)), 0), 0)::float8
         as "oldestDueSeconds",
       (select count(*) from webhook_breakers where open_until is not null) as "openBreakers"
     from walk w
     left join webhook_breakers b on b.endpoint_id = w.endpoint_id
     cross join lateral (
       select q.due_at from webhook_queue q where q.endpoint_id = w.endpoint_id order by q.due_at limit 1
     ) head
     where b.open_until is null`,
    [],
    'webhook-backlog',
  );
  return rows[0] ?? { oldestDueSeconds: 0, openBreakers: 0 };
}

/**
 * The attempts under way at an endpoint. Once a change of its secret has been committed, those seen then are all
 * that may still use the old one (see the claim's lock).
 */
export async function attemptsUnderWay(db: Queryable, endpointId: string): Promise<string[]> {
  const { rows } = await db.query<{ claimId: string }>(
    `select id::text as "claimId" from webhook_claims
     where endpoint_id = $1 and lease_until > clock_timestamp()`,
    [endpointId],
    'webhook-under-way',
  );
  return rows.map((row) => row.claimId);
}
