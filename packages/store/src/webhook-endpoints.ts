import { type EventType, ProblemError, type WebhookEndpoint } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type Queryable, type Transaction } from './db.ts';
import { count } from './plans.ts';
import { lockUsage } from './usage.ts';

export interface EndpointRow {
  id: string;
  url: string;
  events: EventType[];
  createdAt: Date;
}

const columns = `id, url, events, created_at as "createdAt"`;

/** A project has at most five (contract "Webhook endpoints"). */
const maximumEndpoints = 5;

/** Without the signing secret, which is shown once. */
export const endpointResource = ({ id, url, events, createdAt }: EndpointRow): WebhookEndpoint => ({
  ...{ id, url, events, createdAt: createdAt.toISOString() },
});

/** Of a project, oldest first. */
export async function listEndpoints(db: Queryable, projectId: string): Promise<EndpointRow[]> {
  const { rows } = await db.query<EndpointRow>(
    `select ${columns} from webhook_endpoints where project_id = $1 and deleted_at is null
     order by created_at, id`,
    [projectId],
    'endpoints-list',
  );
  return rows;
}

/** null when the project has none of this id. */
export async function findEndpoint(
  db: Queryable,
  projectId: string,
  endpointId: string,
): Promise<EndpointRow | null> {
  const { rows } = await db.query<EndpointRow>(
    `select ${columns} from webhook_endpoints where id = $1 and project_id = $2 and deleted_at is null`,
    [endpointId, projectId],
    'endpoint-find',
  );
  return rows[0] ?? null;
}

/**
 * @param seal encrypts the signing secret for the endpoint of this id
 * @throws ProblemError `endpoint_limit_reached`; `not_found` when the project is gone
 */
export async function createEndpoint(
  tx: Transaction,
  input: {
    accountId: string;
    projectId: string;
    url: string;
    events: readonly EventType[];
    seal: (endpointId: string) => string;
  },
): Promise<EndpointRow> {
  const { accountId, projectId, url, events, seal } = input;
  await lockUsage(tx, accountId);
  const alive = await tx.query('select from projects where id = $1 and deleted_at is null', [projectId]);
  if (alive.rowCount === 0) throw new ProblemError('not_found');
  const existing = await count(
    tx,
    'select count(*) from webhook_endpoints where project_id = $1 and deleted_at is null',
    [projectId],
  );
  if (existing >= maximumEndpoints) throw new ProblemError('endpoint_limit_reached');
  const id = newId('whe');
  // By the record's own clock, as events are: which came first decides whether it is sent.
  const { rows } = await tx.query<EndpointRow>(
    `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
     values ($1, $2, $3, $4, $5, date_trunc('milliseconds', clock_timestamp())) returning ${columns}`,
    [id, projectId, url, events, seal(id)],
  );
  const row = rows[0];
  if (row === undefined) throw new Error('an inserted endpoint was not returned');
  return row;
}

/**
 * Keeps an endpoint from being deleted until the transaction ends, so that nothing is queued for one that is gone.
 * @throws ProblemError `not_found`
 */
export async function keepEndpoint(tx: Transaction, projectId: string, endpointId: string): Promise<void> {
  const { rowCount } = await tx.query(
    'select from webhook_endpoints where id = $1 and project_id = $2 and deleted_at is null for share',
    [endpointId, projectId],
    'endpoint-keep',
  );
  if (rowCount === 0) throw new ProblemError('not_found');
}

/**
 * Deletes an endpoint and fails what waits for it; an attempt under way ends as it ends.
 * @throws ProblemError `not_found`
 */
export async function deleteEndpoint(
  tx: Transaction,
  { projectId, endpointId }: { projectId: string; endpointId: string },
): Promise<void> {
  if ((await deleteWhere(tx, 'id = $1 and project_id = $2', [endpointId, projectId])) === 0) {
    throw new ProblemError('not_found');
  }
}

/** Deletes every endpoint of a project that is deleted itself. */
export async function deleteEndpointsOf(tx: Transaction, projectId: string): Promise<void> {
  await deleteWhere(tx, 'project_id = $1', [projectId]);
}

/** What a delete fails at once; the rest is failed later (`failOrphanedDeliveries`), so that a delete is never long. */
const failedAtOnce = 10_000;

/** The rows stay as long as their deliveries; their secrets have no use any more. */
async function deleteWhere(tx: Transaction, where: string, values: readonly string[]): Promise<number> {
  const { rows } = await tx.query<{ id: string }>(
    `update webhook_endpoints set deleted_at = clock_timestamp(), secret = ''
     where ${where} and deleted_at is null returning id`,
    values,
  );
  if (rows.length > 0) await failWaiting(tx, ids(rows), failedAtOnce);
  return rows.length;
}

async function failWaiting(db: Queryable, endpointIds: readonly string[], limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `with waiting as (
       delete from webhook_queue q
       using (select endpoint_id, due_at, delivery_id from webhook_queue where endpoint_id = any ($1) limit $2) w
       where q.endpoint_id = w.endpoint_id and q.due_at = w.due_at and q.delivery_id = w.delivery_id
       returning q.delivery_id
     )
     update webhook_deliveries set status = 'failed', next_attempt_at = null,
       last_error = 'the endpoint was deleted'
     where status = 'pending' and id in (
       select delivery_id from waiting
       union all select delivery_id from webhook_claims where endpoint_id = any ($1)
     )`,
    [endpointIds, limit],
    'endpoint-fail-waiting',
  );
  return rowCount;
}

/**
 * Fails what still waits for endpoints that are deleted, in batches; nothing of it is ever sent.
 * @returns how many deliveries that were
 */
export async function failOrphanedDeliveries(db: Queryable, signal: AbortSignal): Promise<number> {
  const { rows } = await db.query<{ id: string }>(
    `select id from webhook_endpoints e
     where deleted_at is not null
       and exists (select from webhook_queue q where q.endpoint_id = e.id)`,
    [],
    'endpoints-with-orphans',
  );
  let failed = 0;
  let batch = rows.length;
  while (batch > 0 && !signal.aborted) {
    batch = await failWaiting(db, ids(rows), failedAtOnce);
    failed += batch;
  }
  return failed;
}

const ids = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/**
 * Replaces the signing secret, for waiting deliveries too. Attempts that were begun before may still go out with
 * the old one until they end (`attemptsUnderWay`).
 * @throws ProblemError `not_found`
 */
export async function replaceSecret(
  db: Queryable,
  { projectId, endpointId, sealed }: { projectId: string; endpointId: string; sealed: string },
): Promise<EndpointRow> {
  const { rows } = await db.query<EndpointRow>(
    `update webhook_endpoints set secret = $3
     where id = $1 and project_id = $2 and deleted_at is null returning ${columns}`,
    [endpointId, projectId, sealed],
  );
  const row = rows[0];
  if (row === undefined) throw new ProblemError('not_found');
  return row;
}
