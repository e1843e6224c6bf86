import { type Bus } from '@millrace/bus';
import { createMemoryBus } from '@millrace/bus/memory';
import { topics } from '@millrace/contract';
import { newId, newWebhookSecret, parseKeySet, sealWebhookSecret } from '@millrace/domain';
import {
  type Clock,
  createMetrics,
  type Metrics,
  type Service,
  silentLogger,
  systemClock,
} from '@millrace/platform';
import { createDatabase, type Database, listDeliveries } from '@millrace/store';
import { captureLogger, type CapturedLog, createTestDatabase, seedAccount, waitFor } from '@millrace/testing';
import { webhooksConfig } from '../config.ts';
import { createWebhooks } from '../service.ts';

export const secretKeys = 'test:0123456789abcdef0123456789abcdef';
type DeliveryRow = Awaited<ReturnType<typeof listDeliveries>>[number];

const keys = parseKeySet(secretKeys);

export interface TestEndpoint {
  accountId: string;
  projectId: string;
  endpointId: string;
  secret: string;
}

interface RunningWebhooks {
  service: Service;
  log: CapturedLog;
  metrics: Metrics;
}

/** A record and a bus of their own, and as many webhooks services on them as a test wants. */
export interface Harness {
  store: Database;
  bus: Bus;
  connectionString: string;
  start(
    settings?: Record<string, string>,
    instead?: { store?: Database; clock?: Clock; bus?: Bus },
  ): Promise<RunningWebhooks>;
  addEndpoint(url: string): Promise<TestEndpoint>;
  /** Writes an event into the record and puts its message on the bus. */
  emit(endpoint: TestEndpoint, data?: object): Promise<string>;
  /** Writes deliveries as fan-out does, without a message. */
  queue(endpoint: TestEndpoint, count: number): Promise<string[]>;
  log(endpoint: TestEndpoint): Promise<DeliveryRow[]>;
  /** The log of one endpoint once the predicate likes all rows. */
  logWhen(
    endpoint: TestEndpoint,
    likes: (row: DeliveryRow) => boolean,
    count?: number,
  ): Promise<DeliveryRow[]>;
  /** Moves what waits, claims and breakers back in time, as if that long had passed. */
  pass(interval: string): Promise<void>;
  close(): Promise<void>;
}

export async function createHarness(): Promise<Harness> {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const store = createDatabase({ connectionString, logger: silentLogger });
  const bus = createMemoryBus();
  const running: Service[] = [];

  const writeEvent = async ({ accountId, projectId }: TestEndpoint, data: object): Promise<string> => {
    const eventId = newId('evt');
    const body = { id: eventId, type: 'video.ready', createdAt: new Date(), projectId, data };
    await store.query(
      `insert into events (id, type, account_id, project_id, body, created_at)
       values ($1, 'video.ready', $2, $3, $4, now())`,
      [eventId, accountId, projectId, Buffer.from(JSON.stringify(body))],
    );
    return eventId;
  };
  const harness: Harness = {
    store,
    bus,
    connectionString,
    start: async (settings = {}, instead = {}) => {
      const log = captureLogger();
      const metrics = createMetrics({ service: 'webhooks' });
      const config = webhooksConfig.parse({
        WEBHOOK_SECRET_KEYS: secretKeys,
        WEBHOOKS_ALLOW_LOOPBACK: 'true',
        WEBHOOKS_WORKER: `worker-${running.length}`,
        ...settings,
      });
      const service = createWebhooks({
        ...{ config, store, connectionString, bus, clock: systemClock, logger: log.logger, metrics },
        ...instead,
      });
      running.push(service);
      await service.start(new AbortController().signal);
      return { service, log, metrics };
    },
    addEndpoint: async (url) => {
      const account = await seedAccount(store);
      const endpointId = newId('whe');
      const secret = newWebhookSecret();
      await store.query(
        `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
         values ($1, $2, $3, '{video.ready}', $4, now() - interval '1 hour')`,
        [endpointId, account.projectId, url, sealWebhookSecret(secret, endpointId, keys)],
      );
      return { ...account, endpointId, secret };
    },
    emit: async (endpoint, data = { video: { title: 'A title' } }) => {
      const eventId = await writeEvent(endpoint, data);
      const { projectId } = endpoint;
      const value = { v: 1, eventId, type: 'video.ready', projectId, videoId: 'vid_1' };
      await bus.publish([{ topic: topics.videoEvents.name, key: 'vid_1', value }]);
      return eventId;
    },
    queue: async (endpoint, count) => {
      const ids: string[] = [];
      for (let i = 0; i < count; i++) {
        const eventId = await writeEvent(endpoint, { i });
        ids.push(eventId);
        await store.query(
          `insert into webhook_deliveries (id, endpoint_id, event_id, created_at, next_attempt_at)
           values ($1, $2, $3, clock_timestamp(), clock_timestamp())`,
          [newId('del'), endpoint.endpointId, eventId],
        );
      }
      return ids;
    },
    log: ({ endpointId }) => listDeliveries(store, endpointId, { limit: 100, after: null }),
    logWhen: (endpoint, likes, count = 1) =>
      waitFor(
        async () => {
          const rows = await harness.log(endpoint);
          return rows.length >= count && rows.every(likes) ? rows : undefined;
        },
        { what: 'the delivery log' },
      ),
    pass: async (interval) => {
      await store.query(
        `with due as (
           update webhook_deliveries set next_attempt_at = next_attempt_at - $1::interval where status = 'pending'
         ), waiting as (
           update webhook_queue set due_at = due_at - $1::interval
         ), leases as (
           update webhook_claims set lease_until = lease_until - $1::interval, started_at = started_at - $1::interval,
             due_at = due_at - $1::interval
         ) update webhook_breakers set open_until = open_until - $1::interval`,
        [interval],
      );
      await store.query('notify millrace_webhooks');
    },
    close: async () => {
      await Promise.all(running.map((service) => service.stop()));
      await bus.close();
      await store.close();
      await database.drop();
    },
  };
  return harness;
}
