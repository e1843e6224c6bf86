/**
 * A PostgreSQL with the settings that the embedded mode ships (what is committed is on the disk), endpoints and
 * deliveries in it, and the service over it, for the webhook benches.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type KeySet, newId, newWebhookSecret, parseKeySet, sealWebhookSecret } from '@millrace/domain';
import { createMetrics, type Service, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database, migrate } from '@millrace/store';
import { seedAccount, type SeededAccount } from '@millrace/testing';
import { createWebhooks, webhooksConfig } from '@millrace/webhooks';
import { createMemoryBus } from '../../packages/bus/src/memory/memory-bus.ts';
import { startPostgres } from '@millrace/embedded/postgres';

const secretKeys = 'bench:0123456789abcdef0123456789abcdef';

export interface BenchEndpoint extends SeededAccount {
  endpointId: string;
}

export interface BenchRecord {
  store: Database;
  keys: KeySet;
  /** An endpoint of an account of its own. */
  addEndpoint(url: string): Promise<BenchEndpoint>;
  /** One event and its delivery for each of the targets, due now, in one transaction. */
  addDeliveries(targets: readonly BenchEndpoint[]): Promise<void>;
  /** Whether every delivery has its result in the record. */
  isDone(): Promise<boolean>;
  /** The webhooks service, with settings as shipped. */
  startService(): Promise<Service>;
  close(): Promise<void>;
}

export async function openBenchRecord(): Promise<BenchRecord> {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-bench-webhooks-'));
  const postgres = await startPostgres({ dataDir: folder, logger: silentLogger });
  const { connectionString } = postgres;
  await migrate(connectionString);
  const store = createDatabase({ connectionString, logger: silentLogger });
  const bus = createMemoryBus();
  const keys = parseKeySet(secretKeys);
  return {
    store,
    keys,
    addEndpoint: (url) => addEndpoint(store, keys, url),
    addDeliveries: (targets) => addDeliveries(store, targets),
    isDone: async () => {
      const { rows } = await store.query<{ waits: boolean }>(
        'select exists (select from webhook_queue) or exists (select from webhook_claims) as waits',
      );
      return rows[0]?.waits === false;
    },
    startService: async () => {
      const service = createWebhooks({
        config: webhooksConfig.parse({ WEBHOOK_SECRET_KEYS: secretKeys, WEBHOOKS_ALLOW_LOOPBACK: 'true' }),
        ...{ store, connectionString, bus, clock: systemClock, logger: silentLogger },
        metrics: createMetrics({ service: 'webhooks' }),
      });
      await service.start(new AbortController().signal);
      return service;
    },
    close: async () => {
      await bus.close();
      await store.close();
      await postgres.stop();
      await rm(folder, { recursive: true });
    },
  };
}

async function addEndpoint(store: Database, keys: KeySet, url: string): Promise<BenchEndpoint> {
  const account = await seedAccount(store);
  const endpointId = newId('whe');
  await store.query(
    `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
     values ($1, $2, $3, $4, $5, now())`,
    [
      ...[endpointId, account.projectId, url, ['video.ready']],
      sealWebhookSecret(newWebhookSecret(), endpointId, keys),
    ],
  );
  return { ...account, endpointId };
}

/** As large as a video's event; `at` is when it was made, in milliseconds. */
export function eventBody(eventId: string, projectId: string): Buffer<ArrayBuffer> {
  const createdAt = new Date();
  const video = {
    ...{ id: 'vid_0000000000000000000000', projectId, title: 'A video of the bench', status: 'ready' },
    ...{ durationSeconds: 61.4, qualities: ['360p', '720p', '1080p'], sizeBytes: 48_123_456, failure: null },
    ...{ createdAt, updatedAt: createdAt, readyAt: createdAt, accessMode: 'protected' },
  };
  const at = performance.timeOrigin + performance.now();
  return Buffer.from(
    JSON.stringify({ id: eventId, type: 'video.ready', createdAt, projectId, at, data: { video } }),
  );
}

async function addDeliveries(store: Database, targets: readonly BenchEndpoint[]): Promise<void> {
  const events = targets.map((target) => {
    const eventId = newId('evt');
    return { ...target, eventId, deliveryId: newId('del'), body: eventBody(eventId, target.projectId) };
  });
  const each = (field: 'eventId' | 'accountId' | 'projectId' | 'deliveryId' | 'endpointId'): string[] =>
    events.map((event) => event[field]);
  await store.transaction(async (tx) => {
    await tx.query(
      `insert into events (id, type, account_id, project_id, body, created_at)
       select e.id, 'video.ready', e.account_id, e.project_id, e.body, now()
       from unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) as e (id, account_id, project_id, body)`,
      [each('eventId'), each('accountId'), each('projectId'), events.map((event) => event.body)],
    );
    await tx.query(
      `insert into webhook_deliveries
         (id, endpoint_id, event_id, created_at, next_attempt_at)
       select d.*, now(), clock_timestamp()
       from unnest($1::text[], $2::text[], $3::text[]) as d`,
      [each('deliveryId'), each('endpointId'), each('eventId')],
    );
  });
}
