import { setTimeout as pause } from 'node:timers/promises';
import { type Logger } from '@millrace/platform';
import { type ClientConfig, Pool, types } from 'pg';
import { BusUnavailableError } from '../bus.ts';

/** One statement, prepared once per connection. */
export interface Statement {
  name: string;
  text: string;
}

/** Two small pools to the same database: they differ in what a commit waits for. */
export interface Connections {
  /** Waits for the disk: publishing. One connection, so that its messages go in order. */
  durable: Runner;
  /**
   * Does not wait for the disk: offsets, leases, reading. A crash of the server loses a moment of them at most,
   * never out of order, and costs a repetition.
   */
  relaxed: Runner;
  close(): Promise<void>;
}

export interface Runner {
  /** @throws {BusUnavailableError} when the database cannot be reached, refused or did not answer in time */
  run<Row>(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
}

const statementTimeoutMs = 10_000;
/** How long a statement waits for a connection, in milliseconds. */
const connectTimeoutMs = 5_000;
/** How much longer than the server's own limit the client waits before it gives up on a silent network. */
const silenceMs = 5_000;

/** What every connection of the bus is made with. */
export const connectionConfig = (connectionString: string): ClientConfig => ({
  connectionString,
  connectionTimeoutMillis: connectTimeoutMs,
  keepAlive: true,
  keepAliveInitialDelayMillis: 15_000,
  statement_timeout: statementTimeoutMs,
  lock_timeout: statementTimeoutMs,
  query_timeout: statementTimeoutMs + silenceMs,
  application_name: 'millrace-bus',
});

export function openConnections(connectionString: string, logger: Logger): Connections {
  let closing = false;
  const open = (max: number, options?: string): Pool => {
    const pool = new Pool({
      ...connectionConfig(connectionString),
      ...(options === undefined ? {} : { options }),
      max,
      idleTimeoutMillis: 30_000,
      types: { getTypeParser },
    });
    // An idle connection that dies (restart, failover) is dropped by the pool; without a listener Node would exit.
    pool.on('error', (error) => {
      if (!closing) logger.warn({ err: error }, 'bus connection lost while idle');
    });
    return pool;
  };
  const durable = open(1);
  const relaxed = open(3, '-c synchronous_commit=off');
  return {
    durable: runnerOf(durable),
    relaxed: runnerOf(relaxed),
    close: async () => {
      closing = true;
      await Promise.all([endWithin(durable), endWithin(relaxed)]);
    },
  };
}

const runnerOf = (pool: Pool): Runner => ({
  run: async <Row>(statement: Statement, values: readonly unknown[]) => {
    try {
      const result = await pool.query({ ...statement, values: [...values] });
      return result.rows as Row[];
    } catch (error) {
      throw unavailable(error);
    }
  },
});

/** Closes connections politely, but does not wait for a server that does not answer any more. */
export async function endWithin(connection: { end(): Promise<void> }): Promise<void> {
  const timer = new AbortController();
  const ended = connection.end().catch(() => undefined);
  await Promise.race([ended, pause(silenceMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
  timer.abort();
}

/** Whatever the database answers is the transport's fault: callers' mistakes are found before it is asked. */
const unavailable = (error: unknown): BusUnavailableError =>
  new BusUnavailableError(error instanceof Error ? error.message : 'the bus is unavailable', {
    cause: error,
  });

const int8 = 20;

/** Offsets fit a number for 285 years at a million messages a second. */
const getTypeParser = ((oid: number, format?: 'text' | 'binary') =>
  oid === int8 && format !== 'binary'
    ? Number
    : (types.getTypeParser as (oid: number, format?: string) => unknown)(
        oid,
        format,
      )) as typeof types.getTypeParser;
