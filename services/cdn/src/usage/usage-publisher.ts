import { randomBytes } from 'node:crypto';
import { type Bus, type OutgoingMessage } from '@millrace/bus';
import { type PlaybackUsageMessage, topics } from '@millrace/contract';
import { type Clock, type Logger, type Loop, type Metrics } from '@millrace/platform';
import { type UsageMeter } from './usage-meter.ts';

export interface UsagePublisherDeps {
  bus: Bus;
  meter: Pick<UsageMeter, 'take'>;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** Publishes what the meter counted, in batches that a boot id and a number make idempotent. */
export interface UsagePublisher {
  /** Publishes each second. A failure keeps the batches, to be sent again as they are. */
  loop: Loop;
  /** Publishes what is left; for the end. */
  flush(): Promise<void>;
}

const intervalMs = 1_000;
/** Views in one message: some 100 kB, as a second of watching adds one or two segments to each. */
const viewsPerMessage = 500;
/** Messages kept while the bus is away; the oldest are given up first. */
const maximumUnsent = 10_000;

export function createUsagePublisher(deps: UsagePublisherDeps): UsagePublisher {
  const { bus, meter, clock, logger, metrics } = deps;
  const bootId = randomBytes(12).toString('hex');
  const lost = metrics.counter('millrace_cdn_usage_lost_total', 'Batches of watched time given up unsent.');
  let sequence = 0;
  let unsent: OutgoingMessage[] = [];

  const collect = (): void => {
    for (const [accountId, views] of meter.take()) {
      for (let from = 0; from < views.length; from += viewsPerMessage) {
        const value: PlaybackUsageMessage = {
          v: 1,
          bootId,
          sequence: sequence++,
          accountId,
          views: views.slice(from, from + viewsPerMessage),
        };
        unsent.push({ topic: topics.playbackUsage.name, key: accountId, value });
      }
    }
    const surplus = unsent.length - maximumUnsent;
    if (surplus <= 0) return;
    unsent = unsent.slice(surplus);
    lost.inc({}, surplus);
    logger.error({ batches: surplus }, 'watched time given up, the bus is away for too long');
  };

  const flush = async (): Promise<void> => {
    collect();
    if (unsent.length === 0) return;
    const batch = unsent;
    await bus.publish(batch);
    unsent = unsent.slice(batch.length);
  };

  const loop: Loop = {
    name: 'playback-usage',
    run: async (signal, done) => {
      while (!signal.aborted) {
        await clock.sleep(intervalMs, signal);
        await flush();
        done();
      }
    },
  };
  return { loop, flush };
}
