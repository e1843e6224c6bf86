import { type Database, type Queryable } from './db.ts';

/** A row of the outbox on its way to the bus. */
export interface OutboxRow {
  /** As text: only compared and sent back. */
  id: string;
  topic: string;
  key: string;
  version: number;
  partition: number | null;
  value: object;
  headers: Record<string, string>;
  createdAt: Date;
}

/** Names the relay's lease and the epoch that its writes are guarded by. */
export interface RelayEpoch {
  lease: string;
  epoch: number;
}

/**
 * The next rows to publish, oldest first. Heartbeats (rows with a partition) come after every other row of the
 * same snapshot, and not at all while the limit cuts it off: a heartbeat that arrives proves that whatever was
 * committed before it has been published (design, "CDN state").
 */
export async function nextOutboxRows(db: Queryable, limit: number): Promise<OutboxRow[]> {
  const { rows } = await db.query<OutboxRow>(
    `select o.id::text, o.topic, o.key, o.version, o.partition, o.value, o.headers, o.created_at as "createdAt"
     from outbox o where o.parked_at is null order by o.partition is not null, o.id limit $1`,
    [limit],
    'outbox-next',
  );
  return rows;
}

/** Deletes rows that every replica of the bus has; a relay that lost its lease deletes nothing. */
export async function deleteOutboxRows(
  db: Queryable,
  ids: readonly string[],
  relay: RelayEpoch,
): Promise<void> {
  await db.query(
    `delete from outbox where id = any($1::bigint[])
       and exists (select from leases where name = $2 and epoch = $3)`,
    [ids, relay.lease, relay.epoch],
    'outbox-delete',
  );
}

/**
 * Counts a refusal of one row, and parks the row at the last of `maxAttempts`. Heartbeats of its topic that wait are
 * withdrawn: they would prove that it was published. Returns whether it was parked.
 */
export async function refuseOutboxRow(
  db: Queryable,
  id: string,
  { reason, maxAttempts }: { reason: string; maxAttempts: number },
): Promise<boolean> {
  const { rows } = await db.query<{ parked: boolean }>(
    `with withdrawn as (
       delete from outbox h using outbox o
       where o.id = $1::bigint and o.partition is null and h.topic = o.topic and h.partition is not null
     )
     update outbox set attempts = attempts + 1, last_error = $2,
       parked_at = case when attempts + 1 >= $3 then clock_timestamp() end
     where id = $1::bigint returning parked_at is not null as parked`,
    [id, reason.slice(0, 1000), maxAttempts],
    'outbox-refuse',
  );
  return rows[0]?.parked ?? false;
}

/** What the outbox holds, for metrics: rows waiting, rows parked, and the oldest waiting row's age in seconds. */
export async function outboxBacklog(
  db: Queryable,
): Promise<{ waiting: number; parked: number; oldestSeconds: number }> {
  const { rows } = await db.query<{ waiting: number; parked: number; oldestSeconds: number }>(
    `select count(*) filter (where parked_at is null) as waiting, count(parked_at) as parked,
       coalesce(extract(epoch from clock_timestamp() - min(created_at) filter (where parked_at is null)), 0)::float8
         as "oldestSeconds"
     from outbox`,
    [],
    'outbox-backlog',
  );
  return rows[0] ?? { waiting: 0, parked: 0, oldestSeconds: 0 };
}

/**
 * Adds a heartbeat for each partition of a topic, unless one waits already or a message of the topic was refused,
 * parked or not: then nothing proves that the CDN has seen everything, and it must ask the internal route instead.
 */
export async function addHeartbeats(db: Database, topic: string, partitions: number): Promise<number> {
  const { rowCount } = await db.query(
    `with now as materialized (select clock_timestamp() as at),
     told as (
       insert into heartbeats as h (topic, latest) select $1, at from now
       on conflict (topic) do update set latest = greatest(h.latest, excluded.latest))
     insert into outbox (topic, key, version, partition, value)
     select $1, 'heartbeat', 0, p, jsonb_build_object('v', 1, 'kind', 'heartbeat', 'at',
       to_char(now.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
     from now, generate_series(0, $2 - 1) p
     where not exists (select from outbox o where o.topic = $1
       and (o.parked_at is not null or o.partition = p or (o.partition is null and o.attempts > 0)))`,
    [topic, partitions],
    'outbox-heartbeats',
  );
  return rowCount;
}
