import { ProblemError, type WebhookDelivery } from '@millrace/contract';
import { decideRedelivery, type DeliveryStatus, newId, type Position } from '@millrace/domain';
import { currentTraceHeaders } from '@millrace/platform';
import { type Queryable, type Transaction } from './db.ts';
import { keepEndpoint } from './webhook-endpoints.ts';

export interface DeliveryRow {
  id: string;
  eventId: string;
  eventType: WebhookDelivery['eventType'];
  createdAt: Date;
  status: DeliveryStatus;
  attempts: number;
  lastStatus: number | null;
  lastAttemptAt: Date | null;
  nextAttemptAt: Date | null;
  lastError: string | null;
  redeliveryOf: string | null;
}

const columns = `d.id, d.event_id as "eventId", v.type as "eventType", d.created_at as "createdAt", d.status,
  d.attempts, d.last_status as "lastStatus", d.last_attempt_at as "lastAttemptAt",
  d.next_attempt_at as "nextAttemptAt", d.last_error as "lastError", d.redelivery_of as "redeliveryOf"`;
const from = 'from webhook_deliveries d join events v on v.id = d.event_id';
const now = `date_trunc('milliseconds', clock_timestamp())`;

/** One row of the delivery log (contract WHD-001). */
export const deliveryResource = (row: DeliveryRow): WebhookDelivery => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  lastAttemptAt: row.lastAttemptAt?.toISOString() ?? null,
  nextAttemptAt: row.nextAttemptAt?.toISOString() ?? null,
});

/**
 * Turns an event into deliveries: one for each endpoint that it was for when it came about (which the record chose
 * then) and that is there still. Safe to repeat: an event reaches the queue of an endpoint once.
 * @returns how many were added
 */
export async function fanOutEvent(tx: Transaction, eventId: string): Promise<number> {
  const { rows } = await tx.query<{ endpointId: string }>(
    `with settled as (delete from webhook_fan_outs where event_id = $1)
     select e.id as "endpointId" from events v
     join webhook_endpoints e on e.id = any (v.endpoint_ids) and e.deleted_at is null
     where v.id = $1
     for share of e`,
    [eventId],
    'webhook-subscribers',
  );
  if (rows.length === 0) return 0;
  const { rowCount } = await tx.query(
    `insert into webhook_deliveries (id, endpoint_id, event_id, created_at, next_attempt_at, trace)
     select id, endpoint_id, $1, ${now}, clock_timestamp(), $4::jsonb
     from unnest($2::text[], $3::text[]) as d (id, endpoint_id)
     on conflict do nothing`,
    [eventId, rows.map(() => newId('del')), rows.map(({ endpointId }) => endpointId), traceColumn()],
    'webhook-fan-out',
  );
  return rowCount;
}

/** Events that did not become deliveries for so long, oldest first as their ids are; of one, the message is lost or late. */
export async function overdueFanOuts(
  db: Queryable,
  { olderThanMs, limit }: { olderThanMs: number; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ eventId: string }>(
    `select event_id as "eventId" from webhook_fan_outs
     where since <= clock_timestamp() - $1 * interval '1 millisecond' order by event_id limit $2`,
    [olderThanMs, limit],
    'webhook-overdue-fan-outs',
  );
  return rows.map(({ eventId }) => eventId);
}

/** The current span, for whoever delivers; null outside any. */
function traceColumn(): string | null {
  const headers = currentTraceHeaders();
  return Object.keys(headers).length === 0 ? null : JSON.stringify(headers);
}

/** One page of an endpoint's log, newest first. */
export async function listDeliveries(
  db: Queryable,
  endpointId: string,
  { limit, after }: { limit: number; after: Position | null },
): Promise<DeliveryRow[]> {
  const { rows } = await db.query<DeliveryRow>(
    `select ${columns} ${from}
     where d.endpoint_id = $1 and ($2::timestamptz is null or (d.created_at, d.id) < ($2, $3))
     order by d.created_at desc, d.id desc limit $4`,
    [endpointId, after?.createdAt ?? null, after?.id ?? '', limit],
    'deliveries-list',
  );
  return rows;
}

/**
 * Queues a `webhook.test` event for one endpoint, whatever that subscribes to.
 * @throws ProblemError `not_found`
 */
export async function queueTestEvent(
  tx: Transaction,
  input: { accountId: string; projectId: string; endpointId: string },
): Promise<DeliveryRow> {
  const { accountId, projectId, endpointId } = input;
  await keepEndpoint(tx, projectId, endpointId);
  const eventId = newId('evt');
  const { rows } = await tx.query<{ now: Date }>(`select ${now} as now`);
  const createdAt = rows[0]?.now ?? new Date();
  const body = {
    ...{ id: eventId, type: 'webhook.test', createdAt: createdAt.toISOString(), projectId },
    data: { test: true },
  };
  await tx.query(
    `insert into events (id, type, account_id, project_id, endpoint_ids, body, created_at)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [eventId, body.type, accountId, projectId, [endpointId], Buffer.from(JSON.stringify(body)), createdAt],
  );
  return insertDelivery(tx, { endpointId, eventId, redeliveryOf: null });
}

async function insertDelivery(
  tx: Transaction,
  { endpointId, eventId, redeliveryOf }: { endpointId: string; eventId: string; redeliveryOf: string | null },
): Promise<DeliveryRow> {
  const id = newId('del');
  await tx.query(
    `insert into webhook_deliveries (id, endpoint_id, event_id, created_at, next_attempt_at, redelivery_of, trace)
     values ($1, $2, $3, ${now}, clock_timestamp(), $4, $5::jsonb)`,
    [id, endpointId, eventId, redeliveryOf, traceColumn()],
  );
  return mustRead(tx, id);
}

async function mustRead(tx: Transaction, id: string): Promise<DeliveryRow> {
  const { rows } = await tx.query<DeliveryRow>(`select ${columns} ${from} where d.id = $1`, [id]);
  const row = rows[0];
  if (row === undefined) throw new Error(`delivery ${id} vanished under its lock`);
  return row;
}

/**
 * Sends a delivery's event once more (contract WHE-216 to WHE-219): one that waits becomes due now; one that is over gets
 * a new delivery of the same event and the same bytes.
 * @throws ProblemError `not_found`, `delivery_in_progress`
 */
export async function redeliver(
  tx: Transaction,
  { projectId, endpointId, deliveryId }: { projectId: string; endpointId: string; deliveryId: string },
): Promise<DeliveryRow> {
  await keepEndpoint(tx, projectId, endpointId);
  // The first lock keeps its attempts from being recorded meanwhile, the second keeps it from being claimed.
  const { rows } = await tx.query<{ eventId: string; status: DeliveryStatus }>(
    `select event_id as "eventId", status from webhook_deliveries
     where id = $1 and endpoint_id = $2 for update`,
    [deliveryId, endpointId],
  );
  const delivery = rows[0];
  if (delivery === undefined) throw new ProblemError('not_found');
  const waits = await tx.query(
    `select from webhook_queue q join webhook_deliveries d
       on q.endpoint_id = d.endpoint_id and q.due_at = d.next_attempt_at and q.delivery_id = d.id
     where d.id = $1 for update of q`,
    [deliveryId],
  );
  const { status, eventId } = delivery;
  switch (decideRedelivery({ status, inFlight: status === 'pending' && waits.rowCount === 0 })) {
    case 'refused':
      throw new ProblemError('delivery_in_progress');
    case 'again':
      return insertDelivery(tx, { endpointId, eventId, redeliveryOf: deliveryId });
    case 'now':
      await tx.query(
        `with waits as (
           select id, endpoint_id, next_attempt_at from webhook_deliveries where id = $1
         ), moved as (
           update webhook_queue q set due_at = statement_timestamp() from waits w
           where q.endpoint_id = w.endpoint_id and q.due_at = w.next_attempt_at and q.delivery_id = w.id
         ) update webhook_deliveries set next_attempt_at = statement_timestamp() where id = $1`,
        [deliveryId],
      );
      await tx.query('notify millrace_webhooks');
      return mustRead(tx, deliveryId);
  }
}
