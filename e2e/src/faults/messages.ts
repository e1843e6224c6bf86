import { randomUUID } from 'node:crypto';
import { type Bus, type BusMessage, type JsonValue, type Subscription } from '@millrace/bus';
import { topics } from '@millrace/contract';
import kafkajs from 'kafkajs';
import { type Ledger } from './ledger.ts';

/** Of a copy: the place of its original. */
export const copyHeader = 'millrace-test-copy';
const group = 'test-copies';
const all = Object.values(topics).map(({ name }) => name);

/** Sends every message of the service once more, some time after it. */
export interface Copier {
  /** Of each topic. */
  copied: ReadonlyMap<string, number>;
  /** Originals that have no copy yet. */
  left(): Promise<number>;
  stop(): Promise<void>;
}

export async function copyMessages(bus: Bus): Promise<Copier> {
  const copied = new Map<string, number>(all.map((topic) => [topic, 0]));
  const copy = async ({ topic, key, value, headers, partition, offset }: BusMessage): Promise<void> => {
    if (headers[copyHeader] !== undefined) return;
    await bus.publish([
      {
        topic,
        key,
        partition,
        value: jsonOrText(value),
        headers: { ...headers, [copyHeader]: `${partition} ${offset}` },
      },
    ]);
    copied.set(topic, (copied.get(topic) ?? 0) + 1);
  };
  const subscriptions: Subscription[] = [];
  for (const topic of all) subscriptions.push(await bus.subscribe(group, topic, copy, { concurrency: 4 }));
  return {
    copied,
    left: async () => {
      const lags = await Promise.all(all.map((topic) => bus.lag(group, topic)));
      return lags.flatMap((lag) => [...lag.values()]).reduce((total, messages) => total + messages, 0);
    },
    stop: async () => {
      await Promise.all(subscriptions.map((subscription) => subscription.close()));
    },
  };
}

function jsonOrText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** What nobody can read: no JSON, no text, nothing at all, and JSON of other shapes and versions. */
const bodies = (): (Buffer | null)[] => [
  null,
  Buffer.from('no json'),
  Buffer.from([0xff, 0xfe, 0x00, 0x80]),
  Buffer.from('"text"'),
  Buffer.from('{"v":99}'),
  Buffer.from(`{"v":1,"eventId":7,"accountId":null,"kind":"${'x'.repeat(10_000)}"}`),
];
/** Whose messages of no use go to their dead twin; the two others are said again, or asked for. */
const buried: string[] = [topics.encodeTasks.name, topics.videoEvents.name, topics.playbackUsage.name];
/** What cannot be read is there twice as well: the message and its copy. */
const copies = 2;

/**
 * Publishes messages that nobody can read to every topic, past the service's own publisher, and writes them down.
 * @param keys whose state they pretend to tell
 */
export async function poison(broker: string, keys: readonly string[], ledger: Ledger): Promise<void> {
  const kafka = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING });
  const producer = kafka.producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    // What is sent again after a lost answer is written once: the dead are counted.
    ...{ idempotent: true, maxInFlightRequests: 1 },
  });
  await producer.connect();
  for (const topic of all) {
    const messages = bodies().map((value, i) => ({ key: keys[i % keys.length] ?? null, value }));
    await producer.send({ topic, messages });
    if (buried.includes(topic))
      ledger.poison.set(topic, (ledger.poison.get(topic) ?? 0) + copies * messages.length);
  }
  await producer.disconnect();
}

/** An outbox row that no bus takes, which must hold nobody up. */
export async function unsendable(
  insert: (topic: string, key: string) => Promise<unknown>,
  ledger: Ledger,
): Promise<void> {
  const key = `unsendable-${randomUUID()}`;
  await insert('millrace.nowhere', key);
  ledger.unsendable.push(key);
}
