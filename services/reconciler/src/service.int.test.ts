import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusUnavailableError } from '@millrace/bus';
import { createMemoryBus } from '@millrace/bus/memory';
import { createMetrics, type Metrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import {
  createTestDatabase,
  createTestObjects,
  type TestDatabase,
  type TestObjects,
  waitFor,
} from '@millrace/testing';
import { createReconciler } from './service.ts';

let database: TestDatabase;
let store: Database;
let objects: TestObjects;
let metrics: Metrics;
let reconciler: Service | undefined;

beforeEach(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  objects = await createTestObjects();
  metrics = createMetrics({ service: 'reconciler' });
});
afterEach(async () => {
  await reconciler?.stop();
  await store.close();
  await objects.close();
  await database.drop();
});

describe('a reconciler whose bus is away', () => {
  it('leads, does what needs only the record, is never unhealthy for it, and joins when the bus is there', async () => {
    const real = createMemoryBus();
    let away = true;
    const unlessAway = <T>(work: () => Promise<T>): Promise<T> =>
      away ? Promise.reject(new BusUnavailableError('the bus is away')) : work();
    const bus: Bus = {
      ...real,
      publish: (...args) => unlessAway(() => real.publish(...args)),
      subscribe: (...args) => unlessAway(() => real.subscribe(...args)),
      partitions: (...args) => unlessAway(() => real.partitions(...args)),
    };
    reconciler = createReconciler({
      config: { RECONCILER_LEASE_MS: 1_000, DNS_SERVERS: [] },
      ...{ store, connectionString: database.connectionString, bus, objects: objects.objects, metrics },
      ...{ clock: systemClock, logger: silentLogger },
    });
    const { start, health } = reconciler;
    await start(new AbortController().signal);
    const reaps = 'millrace_loop_last_success_timestamp_seconds{loop="reap-encode-leases"';
    await waitFor(async () => (await metrics.render()).includes(reaps), { what: 'leases to be reaped' });
    const red = ['consume-usage', 'consume-confirmations', 'heartbeats'];
    await waitFor(() => red.every((name) => health().checks[name] === 'the bus is away'), {
      what: 'what needs the bus to be red',
    });
    expect(health()).toMatchObject({ healthy: true, ready: false, checks: { 'reap-encode-leases': 'ok' } });

    away = false;
    await waitFor(() => health().ready, { what: 'the reconciler to be ready' });
    await waitFor(() => Object.values(health().checks).every((check) => check === 'ok'), {
      what: 'all to be well',
    });
    await reconciler.stop();
    reconciler = undefined;
    await real.close();
  });
});
