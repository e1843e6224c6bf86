import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase, type TestDatabase } from '@millrace/testing';
import { Client, type QueryResultRow } from 'pg';
import { type Delivery, type Handler, type OutgoingMessage } from '../bus.ts';
import { createPostgresBus, type PostgresBus } from '../postgres/postgres-bus.ts';
import { createCuttableProxy, type CuttableProxy } from './cuttable-proxy.ts';

/** Nothing but an event moves it: what these times would do, a test would wait for in vain. */
export const eventsOnly = { leaseMs: 120_000, sweepMs: 60_000, handoverMs: 10_000 };
/** Crashes are missed soon. */
export const shortLeases = { leaseMs: 1_500, sweepMs: 100, handoverMs: 10_000 };
export const patience = { timeoutMs: 30_000 };

interface OpenOptions {
  times?: typeof eventsOnly;
  bootId?: string;
  /** Over the line that the test can cut. */
  cuttable?: boolean;
}

/** A database for a test file, a topic of two partitions for each of its tests, and buses that are closed after it. */
export interface PostgresFixture {
  readonly topic: string;
  readonly proxy: CuttableProxy;
  open(options?: OpenOptions): PostgresBus;
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Messages with these numbers as bodies. */
  numbers(from: number, to: number, partition?: number): OutgoingMessage[];
  /** The group's lag by partition. */
  lagOf(bus: PostgresBus, group: string): Promise<number[]>;
}

export function postgresFixture(): PostgresFixture {
  let database: TestDatabase;
  let sql: Client;
  let proxy: CuttableProxy;
  let topic = '';
  const buses: PostgresBus[] = [];

  const fixture: PostgresFixture = {
    get topic() {
      return topic;
    },
    get proxy() {
      return proxy;
    },
    open: ({ times = eventsOnly, bootId = randomUUID(), cuttable = false } = {}) => {
      const connectionString = cuttable ? proxy.url : database.connectionString;
      const bus = createPostgresBus({ connectionString, bootId, logger: silentLogger, times });
      buses.push(bus);
      return bus;
    },
    query: async <Row extends QueryResultRow>(text: string, values: unknown[] = []) =>
      (await sql.query<Row>(text, values)).rows,
    numbers: (from, to, partition = 0) =>
      Array.from({ length: to - from }, (_, i) => ({ topic, key: 'k', value: from + i, partition })),
    lagOf: async (bus, group) => [...(await bus.lag(group, topic)).values()],
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    sql = new Client({ connectionString: database.connectionString });
    await sql.connect();
    proxy = await createCuttableProxy(database.connectionString);
  });
  beforeEach(async () => {
    topic = `test.${randomUUID()}`;
    await fixture.open().ensureTopics({ [topic]: 2 });
  });
  afterEach(async () => {
    proxy.mend();
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
  });
  afterAll(async () => {
    await proxy.close();
    await sql.end();
    await database.drop();
  });
  return fixture;
}

/** A handler that only remembers. */
export function collect(): { values: number[]; deliveries: Delivery[]; handle: Handler } {
  const values: number[] = [];
  const deliveries: Delivery[] = [];
  const handle: Handler = (message, delivery) => {
    values.push(Number(message.value));
    deliveries.push(delivery);
    return Promise.resolve();
  };
  return { values, deliveries, handle };
}
