import { randomUUID } from 'node:crypto';
import { topics } from '@millrace/contract';
import { type Bus, type BusMessage } from '@millrace/bus';
import kafkajs from 'kafkajs';
import { nowMs } from './numbers.ts';

/** A message as its consumer has it. */
interface Arrival {
  videoId: string;
  /** Milliseconds since 1970: when it came, and when its producer sent it. */
  at: number;
  sentAt: number;
}

/** What came since the last `take`, in the order of each video. */
export interface Arrivals {
  count(): number;
  take(): Arrival[];
  close(): Promise<void>;
}

const stateOf = topics.playbackState.schema;
const eventOf = topics.videoEvents.schema;

/** A message's video, and what tells it from its repetitions; null for messages of no video. */
type Read = (message: BusMessage) => { videoId: string; id: string } | null;

const readState: Read = ({ value }) => {
  const message = stateOf.parse(JSON.parse(value));
  if (message.kind !== 'video') return null;
  const { videoId, version } = message.state;
  return { videoId, id: `${videoId} ${version}` };
};
const readEvent: Read = ({ value }) => {
  const { videoId, eventId } = eventOf.parse(JSON.parse(value));
  return { videoId, id: eventId };
};

function collect(): Pick<Arrivals, 'count' | 'take'> & { add: (arrival: Arrival) => void } {
  const came: Arrival[] = [];
  return {
    count: () => came.length,
    add: (arrival) => void came.push(arrival),
    take: () => came.splice(0),
  };
}

/** Reads a topic as the services do: by the bus, every partition at once. */
export async function followTopic(bus: Bus, topic: 'playbackState' | 'videoEvents'): Promise<Arrivals> {
  const { name } = topics[topic];
  const read = topic === 'playbackState' ? readState : readEvent;
  const { add, count, take } = collect();
  const seen = new Set<string>();
  const onMessage = (message: BusMessage): Promise<void> => {
    const at = nowMs();
    const of = read(message);
    if (of !== null && !seen.has(of.id)) {
      seen.add(of.id);
      add({ videoId: of.videoId, at, sentAt: message.timestamp.getTime() });
    }
    return Promise.resolve();
  };
  const concurrency = await bus.partitions(name);
  const subscription = await bus.subscribe(`bench-${randomUUID()}`, name, onMessage, {
    from: 'latest',
    concurrency,
  });
  return { count, take, close: () => subscription.close() };
}

/** Reads a topic with kafkajs and nothing else, as its documentation shows. */
export async function followBare(broker: string, topic: string): Promise<Arrivals> {
  const kafka = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `bench-${randomUUID()}` });
  const joined = Promise.withResolvers<undefined>();
  consumer.on(consumer.events.GROUP_JOIN, () => joined.resolve(undefined));
  const { add, count, take } = collect();
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = new Set<string>();
  await consumer.run({
    eachMessage: ({ partition, message }) => {
      const id = `${partition} ${message.offset}`;
      if (seen.has(id)) return Promise.resolve();
      seen.add(id);
      add({ videoId: message.key?.toString() ?? '', at: nowMs(), sentAt: Number(message.timestamp) });
      return Promise.resolve();
    },
  });
  await joined.promise;
  return { count, take, close: () => consumer.disconnect() };
}
