import { type Logger, type Metrics } from '@millrace/platform';
import { z } from 'zod';
import { type Bus, type BusMessage, type Delivery, type SubscribeOptions, type Subscription } from './bus.ts';
import { continueTrace } from './continue-trace.ts';
import { bury, parseJson } from './dead-letters.ts';

export interface ConsumeOptions<Schema extends z.ZodType> extends SubscribeOptions {
  group: string;
  /** One of `topics` of the contract. */
  topic: { readonly name: string; readonly schema: Schema };
  /** As `Handler`, with the parsed body. Fields that the schema does not know are gone. */
  handle(value: z.output<Schema>, message: BusMessage, delivery: Delivery): Promise<void>;
  /**
   * Whether a failure of `handle` says that it can never handle this body: then the message is dead too. Whatever else
   * it fails by, the message is delivered again.
   */
  isHopeless?(error: unknown): boolean;
  /**
   * Called with a message that is dead, instead of sending it to the dead topic. Resolving commits it,
   * rejecting delivers it again.
   */
  onDead?(message: BusMessage, reason: string): Promise<void> | void;
  logger: Logger;
  metrics?: Metrics;
}

const secondsBuckets = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

/**
 * Subscribes with bodies parsed by the topic's schema. A message that does not parse or is hopeless never blocks
 * those behind it: it goes to `<topic>.dead` with its reason and origin in headers (see `replayDead`), is
 * counted and logged, and then committed.
 */
export function consume<Schema extends z.ZodType>(
  bus: Bus,
  options: ConsumeOptions<Schema>,
): Promise<Subscription> {
  const { group, topic, logger } = options;
  const count = counters(topic.name, options.metrics);

  const die = async (message: BusMessage, reason: string, what = 'message does not parse'): Promise<void> => {
    const { partition, offset, key } = message;
    count.dead();
    logger.error({ topic: topic.name, group, partition, offset, key, reason }, what);
    if (options.onDead) await options.onDead(message, reason);
    else await bury(bus, group, message, reason);
  };

  const handler = async (message: BusMessage, delivery: Delivery): Promise<void> => {
    const json = parseJson(message.value);
    if (json === undefined) {
      await die(message, 'not JSON');
      return;
    }
    const parsed = topic.schema.safeParse(json);
    if (!parsed.success) {
      await die(message, z.prettifyError(parsed.error));
      return;
    }
    try {
      await count.handled(() => continueTrace(message, () => options.handle(parsed.data, message, delivery)));
    } catch (error) {
      if (options.isHopeless?.(error) !== true) {
        count.failed();
        throw error;
      }
      await die(message, String(error), 'message can never be handled');
    }
  };
  return bus.subscribe(group, topic.name, handler, options);
}

/** Groups are no label: each CDN process has its own. */
function counters(
  topic: string,
  metrics: Metrics | undefined,
): { dead(): void; failed(): void; handled(work: () => Promise<void>): Promise<void> } {
  const messages = metrics?.counter(
    'millrace_bus_consumed_total',
    'Messages by what became of them: handled, failed (delivered again) or dead (does not parse, or is hopeless).',
    ['topic', 'outcome'],
  );
  // From zero on: of a series that begins with its first fault, no rate and no alert sees that one.
  for (const outcome of ['handled', 'failed', 'dead']) messages?.inc({ topic, outcome }, 0);
  const seconds = metrics?.histogram('millrace_bus_handle_seconds', 'Time in the handler.', secondsBuckets, [
    'topic',
  ]);
  return {
    dead: () => messages?.inc({ topic, outcome: 'dead' }),
    failed: () => messages?.inc({ topic, outcome: 'failed' }),
    handled: async (work) => {
      const start = performance.now();
      try {
        await work();
        messages?.inc({ topic, outcome: 'handled' });
      } finally {
        seconds?.observe((performance.now() - start) / 1_000, { topic });
      }
    },
  };
}
