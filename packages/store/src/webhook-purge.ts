import { type Queryable } from './db.ts';

/** How long the log and the bodies of events are kept (contract "Webhook endpoints", WHE-215). */
const kept = `interval '30 days'`;

/** An old event that was looked at; its time as text, since a `Date` has no microseconds. */
interface OldEvent {
  id: string;
  createdAt: string;
}

/**
 * Forgets the log: deliveries that are over and older than 30 days, events of that age of which no delivery is left,
 * and deleted endpoints of that age. Goes along the events from the oldest, `batch` of them in a statement, so that
 * what an old event still has (a delivery that waits, a late redelivery) keeps nothing else; deliveries need no index
 * of their own for it.
 * @returns how many rows went
 */
export async function purgeWebhookLog(db: Queryable, signal: AbortSignal, batch = 1_000): Promise<number> {
  let removed = 0;
  let after: OldEvent | undefined;
  while (!signal.aborted) {
    const events = await oldEvents(db, after, batch);
    after = events.at(-1);
    if (after === undefined) break;
    removed += await forgetEvents(
      db,
      events.map(({ id }) => id),
    );
  }
  return removed + (await forgetEndpoints(db));
}

async function oldEvents(db: Queryable, after: OldEvent | undefined, limit: number): Promise<OldEvent[]> {
  const { rows } = await db.query<OldEvent>(
    `select id, created_at::text as "createdAt" from events
     where created_at < clock_timestamp() - ${kept}
       and ($1::timestamptz is null or (created_at, id) > ($1, $2))
     order by created_at, id limit $3`,
    [after?.createdAt ?? null, after?.id ?? '', limit],
    'webhook-old-events',
  );
  return rows;
}

async function forgetEvents(db: Queryable, eventIds: readonly string[]): Promise<number> {
  const deliveries = await db.query(
    `delete from webhook_deliveries
     where event_id = any ($1) and status <> 'pending' and created_at < clock_timestamp() - ${kept}`,
    [eventIds],
    'webhook-forget-deliveries',
  );
  const events = await db.query(
    `with gone as (
       delete from events v where id = any ($1)
         and not exists (select from webhook_deliveries d where d.event_id = v.id)
       returning id
     ), forgotten as (
       delete from webhook_fan_outs where event_id in (select id from gone)
     ) select from gone`,
    [eventIds],
    'webhook-forget-events',
  );
  return deliveries.rowCount + events.rowCount;
}

/** There are few of them. */
async function forgetEndpoints(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `with gone as (
       delete from webhook_endpoints e where deleted_at < clock_timestamp() - ${kept}
         and not exists (select from webhook_deliveries d where d.endpoint_id = e.id)
       returning id
     ), forgotten as (
       delete from webhook_breakers where endpoint_id in (select id from gone)
     ) select from gone`,
    [],
    'webhook-forget-endpoints',
  );
  return rowCount;
}
