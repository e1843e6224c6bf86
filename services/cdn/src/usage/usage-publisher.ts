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
/**
 * What one message may carry, in segments of some 30 bytes: about 100 kB, far below what any bus takes. A view
 * weighs as much as five segments beside its own.
 */
const segmentsPerMessage = 3_000;
const viewWeight = 5;
/** Messages handed to the bus at once: some 2 MB. After an outage a single batch of all might never pass. */
const messagesPerPublish = 20;
/** Messages kept while the bus is away, at most 200 MB; the oldest are given up first. */
const maximumUnsent = 2_000;

type View = PlaybackUsageMessage['views'][number];

export function createUsagePublisher(deps: UsagePublisherDeps): UsagePublisher {
  const { bus, meter, clock, logger, metrics } = deps;
  const bootId = randomBytes(12).toString('hex');
  const lost = metrics.counter('millrace_cdn_usage_lost_total', 'Batches of watched time given up unsent.');
  let sequence = 0;
  let unsent: OutgoingMessage[] = [];

  const collect = (): void => {
    for (const [accountId, views] of meter.take()) {
      for (const portion of portionsOf(views)) {
        const value: PlaybackUsageMessage = {
          v: 1,
          bootId,
          sequence: sequence++,
          accountId,
          views: portion,
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
    while (unsent.length > 0) {
      const batch = unsent.slice(0, messagesPerPublish);
      await bus.publish(batch);
      unsent = unsent.slice(batch.length);
    }
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

/** Cuts views into what one message may carry each; a view of very many segments is cut too. */
function portionsOf(views: readonly View[]): View[][] {
  const portions: View[][] = [];
  let room = 0;
  for (const view of views) {
    for (let from = 0; from < view.segments.length;) {
      if (room <= viewWeight) {
        portions.push([]);
        room = segmentsPerMessage;
      }
      const segments = view.segments.slice(from, from + room - viewWeight);
      portions.at(-1)?.push({ ...view, segments });
      room -= viewWeight + segments.length;
      from += segments.length;
    }
  }
  return portions;
}
