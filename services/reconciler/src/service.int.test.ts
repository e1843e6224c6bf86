import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusUnavailableError } from '@millrace/bus';
import { createMemoryBus } from '@millrace/bus/memory';
import { topics } from '@millrace/contract';
import { createMetrics, type Metrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database, moveVideo } from '@millrace/store';
import {
  createTestDatabase,
  createTestObjects,
  seedAccount,
  seedProcessingVideo,
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

describe('a reconciler whose bus took an event and lost it', () => {
  it('makes the deliveries of it from the record [WHD-402]', async () => {
    const real = createMemoryBus();
    let lost = 0;
    const bus: Bus = {
      ...real,
      publish: (messages) => {
        const kept = messages.filter(({ topic }) => topic !== topics.videoEvents.name);
        lost += messages.length - kept.length;
        return real.publish(kept);
      },
    };
    const account = await seedAccount(store);
    await store.query(
      `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
       values ('whe_1', $1, 'https://hooks.example.com/', '{video.ready}', 's', now())`,
      [account.projectId],
    );
    reconciler = createReconciler({
      config: { RECONCILER_LEASE_MS: 1_000, DNS_SERVERS: [] },
      ...{ store, connectionString: database.connectionString, bus, objects: objects.objects, metrics },
      ...{ clock: systemClock, logger: silentLogger },
    });
    await reconciler.start(new AbortController().signal);
    const videoId = await seedProcessingVideo(store, account);
    await store.transaction((tx) => moveVideo(tx, videoId, { type: 'encoding_finished' }));
    const waiting = `select from outbox where topic = '${topics.videoEvents.name}'`;
    await waitFor(async () => lost > 0 && (await store.query(waiting)).rowCount === 0, {
      what: 'the event to be lost',
    });

    await store.query(`update webhook_fan_outs set since = since - interval '2 minutes'`);
    const delivery = `select status from webhook_deliveries d join events e on e.id = d.event_id
      where e.video_id = $1 and d.endpoint_id = 'whe_1'`;
    await waitFor(async () => (await store.query(delivery, [videoId])).rowCount === 1, {
      timeoutMs: 60_000,
      what: 'the delivery of the lost event',
    });
    await reconciler.stop();
    reconciler = undefined;
    await real.close();
  });
});

describe('a reconciler that has not led yet', () => {
  it('shows the counters of what a leader finds, from zero on, and none of its gauges', async () => {
    const bus = createMemoryBus();
    createReconciler({
      config: { RECONCILER_LEASE_MS: 1_000, DNS_SERVERS: [] },
      ...{ store, connectionString: database.connectionString, bus, objects: objects.objects, metrics },
      ...{ clock: systemClock, logger: silentLogger },
      chores: (own) => {
        own.counter('of_a_chore_total', 'Counted by a chore.').inc({}, 0);
        return [];
      },
    });
    const shown = await metrics.render();
    for (const series of [
      ...['millrace_usage_drift_total{kind="stored"', 'millrace_usage_drift_total{kind="upload"'],
      ...['millrace_hold_propagation_seconds_count{', 'millrace_outbox_parked_total{', 'of_a_chore_total{'],
      'millrace_loop_failures_total{loop="outbox-relay"',
      'millrace_reconcile_failures_total{loop="abort-orphan-uploads"',
    ]) {
      const found = shown.split('\n').filter((line) => line.startsWith(series));
      expect([series, found.length > 0, found.every((line) => line.endsWith(' 0'))]).toEqual([
        ...[series, true, true],
      ]);
    }
    const gauges = [...shown.matchAll(/^# TYPE (\w+) gauge\n\1\{/gm)].map(([, name]) => name);
    expect(gauges).toEqual(['millrace_reconciler_leading']);
    await bus.close();
  });
});

describe('a reconciler that leads no longer', () => {
  it('shows what its work showed no longer, but the gauges of work that goes on', async () => {
    const bus = createMemoryBus();
    const told = (text: string): string[] =>
      [...text.matchAll(/^# TYPE (\w+) gauge\n\1\{/gm)].map(([, name = '']) => name);
    reconciler = createReconciler({
      config: { RECONCILER_LEASE_MS: 1_000, DNS_SERVERS: [] },
      ...{ store, connectionString: database.connectionString, bus, objects: objects.objects, metrics },
      ...{ clock: systemClock, logger: silentLogger },
      chores: (own) => {
        own.gauge('of_a_chore', 'Set by a chore.').set(1);
        own.observe('read_of_a_chore', 'Read of a chore.', () => 1);
        return [];
      },
    });
    await reconciler.start(new AbortController().signal);
    const ofTheTerm = [
      ...['millrace_holds_spreading', 'millrace_holds_spreading_oldest_seconds', 'millrace_outbox_rows'],
      ...['of_a_chore', 'read_of_a_chore'],
    ];
    await waitFor(
      async () => {
        const shown = told(await metrics.render());
        return ofTheTerm.every((name) => shown.includes(name));
      },
      { what: 'the leader to show its work' },
    );
    const loops = async (): Promise<string[]> =>
      [...(await metrics.render()).matchAll(/^millrace_loop_last_success\w+\{loop="([\w-]+)"/gm)].map(
        ([, name = '']) => name,
      );
    await waitFor(async () => (await loops()).includes('spread-holds'));
    await store.query(`update leases set holder = 'another', epoch = epoch + 1, expires_at = 'infinity'`);
    await waitFor(
      async () => (await metrics.render()).includes('millrace_reconciler_leading{service="reconciler"} 0'),
      {
        what: 'leadership to be lost',
      },
    );
    expect(told(await metrics.render()).sort()).toEqual([
      ...['millrace_loop_last_success_timestamp_seconds', 'millrace_reconciler_leading'],
    ]);
    expect((await loops()).sort()).toEqual(['consume-confirmations', 'consume-usage']);
    await reconciler.stop();
    reconciler = undefined;
    await bus.close();
  });
});
