import { setTimeout as pause } from 'node:timers/promises';
import { type Logger, type Metrics } from '@millrace/platform';
import { DatabaseError, Pool, type PoolClient, type QueryConfig, types } from 'pg';

/** What repository functions take: a pool or a transaction. */
export interface Queryable {
  /**
   * Runs one statement. With a `name` it is prepared once per connection (hot queries; one name, one text).
   * Timestamps come as `Date`, int8 as a number.
   * @throws {DatabaseUnavailableError} when the record cannot be reached or did not answer in time
   */
  // The caller names the shape of its rows; SQL cannot infer it.
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
  query<Row>(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<{ rows: Row[]; rowCount: number }>;
}

declare const insideTransaction: unique symbol;

/** A connection inside `begin … commit`. Branded: a function that must be atomic cannot get a plain pool. */
export interface Transaction extends Queryable {
  readonly [insideTransaction]: true;
}

export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction: commits when it resolves, rolls back when it rejects. `work` runs again
   * from its start after a deadlock or serialization failure, so it has no effects outside the record.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Waits for what runs, then closes every connection. */
  close(): Promise<void>;
}

/** The record cannot be reached, is overloaded or did not answer in time; trying again later may help. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
  readonly code = 'database_unavailable';
}

export interface DatabaseOptions {
  connectionString: string;
  /** Connections at most; 10 unless told. */
  max?: number;
  /** How long one statement may run, in milliseconds; 10 s unless told. */
  statementTimeoutMs?: number;
  /** How long a request waits for a connection, in milliseconds; 5 s unless told. */
  connectTimeoutMs?: number;
  logger: Logger;
  /** Shows how full the pool is. */
  metrics?: Metrics;
}

/** How much longer than the server's own limit the client waits before it gives up on a silent network. */
const silenceMs = 5_000;
const maximumAttempts = 5;
const int8 = 20;

/**
 * A pool of connections to the record. Nothing is opened before the first query, so that a database which is
 * down does not stop a start. A lost connection is replaced by the next query; the process goes on.
 */
export function createDatabase(options: DatabaseOptions): Database {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  const pool = new Pool({
    connectionString: options.connectionString,
    max: options.max ?? 10,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    statement_timeout: statementTimeoutMs,
    lock_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: 2 * statementTimeoutMs,
    query_timeout: statementTimeoutMs + silenceMs,
    types: { getTypeParser },
  });
  // An idle connection that dies (restart, failover) is dropped by the pool; without a listener Node would exit.
  let closing = false;
  pool.on('error', (error) => {
    if (!closing) options.logger.warn({ err: error }, 'database connection lost while idle');
  });
  const { metrics } = options;
  const unavailable = metrics?.counter(
    'millrace_db_unavailable_total',
    'Statements and transactions that failed since the record was away, overloaded or late.',
  );
  const counting = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DatabaseUnavailableError) unavailable?.inc();
      throw error;
    }
  };
  metrics?.observe('millrace_db_connections', 'Connections to the record.', () => pool.totalCount);
  metrics?.observe('millrace_db_idle_connections', 'Connections that nobody uses.', () => pool.idleCount);
  metrics?.observe('millrace_db_waiting', 'Who waits for a connection.', () => pool.waitingCount);
  return {
    query: (text, values, name) =>
      counting(onLiveConnection(pool, wasRefused, () => run(pool, text, values, name))),
    transaction: (work) => counting(transact(pool, work)),
    close: () => {
      closing = true;
      return pool.end();
    },
  };
}

/** True for a unique violation (SQLSTATE 23505), of this constraint or index when one is named. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean =>
  error instanceof DatabaseError &&
  error.code === '23505' &&
  (constraint === undefined || error.constraint === constraint);

/** True when the record cannot hold a value that it was given (SQLSTATE class 22): trying again does not help. */
export const isDataException = (error: unknown): boolean =>
  error instanceof DatabaseError && error.code?.startsWith('22') === true;

const getTypeParser = ((oid: number, format?: 'text' | 'binary') =>
  oid === int8 && format !== 'binary'
    ? parseInt8
    : (types.getTypeParser as (oid: number, format?: string) => unknown)(
        oid,
        format,
      )) as typeof types.getTypeParser;

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 ${text} does not fit a JavaScript number`);
  return value;
}

// As in Queryable: the caller names the shape of its rows.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
async function run<Row>(
  runner: Pool | PoolClient,
  text: string,
  values: readonly unknown[] = [],
  name?: string,
): Promise<{ rows: Row[]; rowCount: number }> {
  const config: QueryConfig = { text, values: [...values], ...(name === undefined ? {} : { name }) };
  try {
    const result = await runner.query(config);
    return { rows: result.rows as Row[], rowCount: result.rowCount ?? 0 };
  } catch (error) {
    throw translate(error);
  }
}

/**
 * Tries again while pooled connections turn out to be dead (after a restart all of them are): each try drops
 * one, so there are at most as many as the pool holds.
 */
async function onLiveConnection<T>(
  pool: Pool,
  isDead: (error: unknown) => boolean,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let dead = 0; ; dead++) {
    try {
      return await attempt();
    } catch (error) {
      if (dead === pool.options.max || !isDead(error)) throw error;
    }
  }
}

/** As the answer to a statement, a server's last word on a connection means that the statement was not run. */
const wasRefused = (error: unknown): boolean =>
  error instanceof DatabaseUnavailableError &&
  error.cause instanceof DatabaseError &&
  error.cause.code === '57P01';

/** The connection is gone; whether the statement was run is not known, which matters nothing for `begin`. */
const wasCut = (error: unknown): boolean =>
  wasRefused(error) ||
  (error instanceof DatabaseUnavailableError &&
    /connection terminated|not queryable|ECONNRESET|EPIPE/i.test(error.message));

async function transact<T>(pool: Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transactOnce(pool, work);
    } catch (error) {
      if (attempt === maximumAttempts || !isConflict(error)) throw error;
      // Rivals that met once must not meet again in step.
      await pause(Math.random() * 10 * 2 ** attempt);
    }
  }
}

async function transactOnce<T>(pool: Pool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const client = await begin(pool);
  let lost: Error | undefined;
  // A connection that dies between two statements says so here only; unheard, it would end the process.
  const onError = (error: Error): void => {
    lost = error;
  };
  client.on('error', onError);
  const tx = {
    query: (text: string, values?: readonly unknown[], name?: string) => run(client, text, values, name),
  } as Transaction;
  try {
    const result = await work(tx);
    await commit(client);
    return result;
  } catch (error) {
    await run(client, 'rollback').catch((failure: unknown) => {
      lost ??= failure as Error;
    });
    throw error;
  } finally {
    client.off('error', onError);
    client.release(lost);
  }
}

async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('commit').catch((error: unknown) => {
    throw translate(error);
  });
  // PostgreSQL answers a commit after a failed statement with a silent rollback.
  if (command !== 'COMMIT') throw new Error('a transaction went on after one of its statements failed');
}

/** A connection with a transaction open. */
const begin = (pool: Pool): Promise<PoolClient> =>
  onLiveConnection(pool, wasCut, async () => {
    const client = await pool.connect().catch((error: unknown) => {
      throw translate(error);
    });
    const ignore = (): void => undefined;
    client.on('error', ignore);
    try {
      await run(client, 'begin');
      return client;
    } catch (error) {
      client.release(error as Error);
      throw error;
    } finally {
      client.off('error', ignore);
    }
  });

const isConflict = (error: unknown): boolean =>
  error instanceof DatabaseError && (error.code === '40001' || error.code === '40P01');

/** SQLSTATEs that say "not now" (PostgreSQL appendix A): shutting down, starting, too many, timed out. */
const unavailableStates = /^(08|57P0[1-5]|53|57014|55P03|25P03|25P04)/;
const unavailableMessages =
  /connection terminated|connection timeout|timeout exceeded when trying to connect|read timeout|not queryable|after calling end on the pool/i;

function translate(error: unknown): unknown {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  const unavailable =
    error instanceof DatabaseError
      ? unavailableStates.test(code ?? '')
      : syscall !== undefined || unavailableMessages.test(message);
  return unavailable ? new DatabaseUnavailableError(message, { cause: error }) : error;
}
