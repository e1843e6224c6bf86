import { randomUUID } from 'node:crypto';
import { type Bus, consume, createMember } from '@millrace/bus';
import { topics } from '@millrace/contract';
import {
  type Clock,
  createBell,
  createEgress,
  type EgressConnector,
  type Logger,
  type Metrics,
  type Service,
  superviseLoops,
} from '@millrace/platform';
import {
  type Database,
  fanOutEvent,
  finishAttempts,
  isDataException,
  listen,
  type Listener,
} from '@millrace/store';
import { type WebhooksConfig } from './config.ts';
import { backlogLoop } from './delivery/backlog.ts';
import { Deliverer } from './delivery/deliverer.ts';
import { createKeyOpener } from './delivery/open-keys.ts';
import { Recorder } from './delivery/recorder.ts';
import { createReporter } from './delivery/report.ts';
import { takeOverLoop } from './delivery/take-over.ts';
import { resealLoop } from './secrets/reseal.ts';
import { createSender } from './sender/sender.ts';

export interface WebhooksDeps {
  config: WebhooksConfig;
  store: Database;
  /** For LISTEN: a direct connection, never through a pooler. */
  connectionString: string;
  bus: Bus;
  /** The guarded way out with the settings' rules unless told; closed with the service. */
  egress?: EgressConnector;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

const group = 'webhooks';
/** Kept for the next attempt, of all endpoints together. */
const idleConnections = 1_024;
const channel = 'millrace_webhooks';
/** How long a stop waits for a record that is away. */
const recordPatienceMs = 5_000;
/** Partitions whose events are fanned out at once. */
const fanOutConcurrency = 4;

/**
 * Delivers events to customers' endpoints: a consumer turns each event into deliveries, workers claim what is due
 * and attempt it (docs/adr/0006-webhook-delivery.md). While the bus is away, what is queued is delivered.
 */
export function createWebhooks(deps: WebhooksDeps): Service {
  const { config, store, bus, clock, logger, metrics } = deps;
  const egress =
    deps.egress ?? createEgress({ loopback: config.WEBHOOKS_ALLOW_LOOPBACK, maxIdle: idleConnections });
  const worker = { name: config.WEBHOOKS_WORKER, boot: randomUUID() };
  const bell = createBell(clock);
  const reporter = createReporter(logger, metrics);
  const recorder = new Recorder({
    write: async (results) => {
      const askedAt = performance.now();
      const goOn = deliverer.goesOn ? { worker, leaseMs: config.WEBHOOKS_LEASE_MS } : null;
      const { changes, next, vacated } = await finishAttempts(store, results, goOn);
      for (const change of changes) reporter.breakerChanged(change);
      await deliverer.goOn(next, { askedAt, vacated });
    },
    onSettled: (results) => deliverer.settled(results),
    clock,
    logger,
  });
  const deliverer = new Deliverer({
    ...{ config, store, worker, recorder, reporter, bell, clock, logger },
    sender: createSender({ egress, clock, timeoutMs: config.WEBHOOKS_TIMEOUT_MS }),
    openKey: createKeyOpener(config.WEBHOOK_SECRET_KEYS),
  });
  metrics.observe(
    'millrace_webhook_in_flight',
    'Attempts under way or not recorded yet.',
    () => deliverer.inFlight,
  );
  const member = createMember('consume-events', () =>
    consume(bus, {
      ...{ group, topic: topics.videoEvents, logger, metrics },
      ...{ concurrency: fanOutConcurrency, isHopeless: isDataException },
      handle: async ({ eventId }) => {
        await store.transaction((tx) => fanOutEvent(tx, eventId));
      },
    }),
  );
  const consumer = superviseLoops([member.loop], { clock, logger, metrics });
  const loops = superviseLoops(
    [
      takeOverLoop({ store, worker, holds: () => deliverer.holds, reporter, bell, clock }),
      deliverer.loop(),
      backlogLoop({ store, clock, metrics }),
      resealLoop({ keys: config.WEBHOOK_SECRET_KEYS, store, clock, logger, metrics }),
    ],
    { clock, logger, metrics },
  );
  let listener: Listener | undefined;
  let stopping = false;

  return {
    name: 'webhooks',
    start: async (signal) => {
      await store.query('select 1');
      listener = listen(deps, channel, () => bell.ring());
      loops.start();
      consumer.start();
      await member.attempted(signal);
    },
    stop: async () => {
      stopping = true;
      await consumer.stop();
      await Promise.all([loops.stop(), deliverer.close()]);
      await recorder.close(recordPatienceMs);
      await Promise.all([listener?.close(), egress.close()]);
    },
    health: () => {
      const checks = { ...consumer.checks(), ...loops.checks(), record: recorder.state };
      const fine = Object.values(checks).every((check) => check === 'ok');
      // Never unhealthy: a restart brings nothing back that is away, and loses the attempts under way.
      return { healthy: true, ready: member.joined && !stopping && fine, checks };
    },
  };
}
