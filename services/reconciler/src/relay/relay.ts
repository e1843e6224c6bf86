import { type Bus, BusRequestError, type JsonValue, type OutgoingMessage } from '@millrace/bus';
import { beginSpan, type Clock, type Logger, reachPhase } from '@millrace/platform';
import {
  type Database,
  deleteOutboxRows,
  nextOutboxRows,
  type OutboxRow,
  refuseOutboxRow,
  type RelayEpoch,
} from '@millrace/store';

export interface RelayDeps {
  store: Database;
  bus: Bus;
  clock: Clock;
  logger: Logger;
  onPublished: (rows: readonly OutboxRow[]) => void;
  onParked: (row: OutboxRow) => void;
}

const batchSize = 500;
/** How often a row may be refused by the bus before it is parked. */
const maxAttempts = 5;

/**
 * Publishes what waits in the outbox, in order, until it is empty, and deletes what every replica has. Stops at
 * the first failure of the bus or the record: nothing is lost, the next sweep goes on. Returns how many rows
 * left.
 */
export async function relayOutbox(deps: RelayDeps, relay: RelayEpoch, signal: AbortSignal): Promise<number> {
  let relayed = 0;
  while (!signal.aborted) {
    const rows = await nextOutboxRows(deps.store, batchSize);
    if (rows.length === 0) break;
    reachPhase('outbox.read', () => namesOf(rows));
    const published = await publish(deps, rows);
    reachPhase('outbox.published', () => namesOf(published));
    await deleteOutboxRows(
      deps.store,
      published.map((row) => row.id),
      relay,
    );
    relayed += published.length;
    // Refused rows wait for the next sweep: a loop that tried them at once would park them in a blink.
    if (published.length < rows.length || rows.length < batchSize) break;
  }
  return relayed;
}

const namesOf = (rows: readonly OutboxRow[]): { rows: { id: string; topic: string }[] } => ({
  rows: rows.map(({ id, topic }) => ({ id, topic })),
});

interface Outgoing {
  message: OutgoingMessage;
  /** It has left: its time in the outbox becomes a span. */
  left: () => void;
}

function outgoing(row: OutboxRow): Outgoing {
  const message: OutgoingMessage = {
    topic: row.topic,
    key: row.key,
    value: row.value as JsonValue,
    headers: row.headers,
    ...(row.partition === null ? {} : { partition: row.partition }),
  };
  if (row.headers['traceparent'] === undefined) return { message, left: () => undefined };
  const span = beginSpan(`publish ${row.topic}`, {
    kind: 'PRODUCER',
    attributes: {
      'messaging.system': 'millrace',
      'messaging.operation.type': 'send',
      'messaging.destination.name': row.topic,
      'messaging.message.key': row.key,
    },
    ...{ from: row.headers, startTime: row.createdAt },
  });
  return { message: { ...message, headers: { ...row.headers, ...span.headers } }, left: span.end };
}

/**
 * One batch; when the bus refuses it, row by row, so that one bad row holds nobody up, but for heartbeats of its topic:
 * they prove that whatever came before them was published.
 */
async function publish(deps: RelayDeps, rows: readonly OutboxRow[]): Promise<readonly OutboxRow[]> {
  try {
    const batch = rows.map(outgoing);
    await deps.bus.publish(batch.map(({ message }) => message));
    for (const { left } of batch) left();
    deps.onPublished(rows);
    return rows;
  } catch (error) {
    if (!(error instanceof BusRequestError)) throw error;
  }
  const published: OutboxRow[] = [];
  const refused = new Set<string>();
  for (const row of rows) {
    if (row.partition !== null && refused.has(row.topic)) continue;
    try {
      const { message, left } = outgoing(row);
      await deps.bus.publish([message]);
      left();
      published.push(row);
    } catch (error) {
      if (!(error instanceof BusRequestError)) throw error;
      if (row.partition === null) refused.add(row.topic);
      const parked = await refuseOutboxRow(deps.store, row.id, { reason: error.message, maxAttempts });
      deps.logger.error({ err: error, topic: row.topic, key: row.key, parked }, 'outbox row refused');
      if (parked) deps.onParked(row);
    }
  }
  deps.onPublished(published);
  return published;
}
