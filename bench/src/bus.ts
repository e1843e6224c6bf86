/**
 * What a message costs on the two buses: a real Kafka broker beside the log in a real PostgreSQL (what is published is
 * on the disk), both on this machine. In one run and taking turns: how many messages a second are published and
 * handled, and how long one takes from the call of `publish` to its handler at a steady pace.
 *
 *   npm run bench:bus [-- --messages 20000] [--pace 200] [--seconds 20] [--rounds 3]
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Bus, type OutgoingMessage } from '@millrace/bus';
import { createKafkaBus } from '@millrace/bus/kafka';
import { createPostgresBus } from '@millrace/bus/postgres';
import { startPostgres } from '@millrace/embedded/postgres';
import { silentLogger } from '@millrace/platform';
import { migrate } from '@millrace/store';
import { readFlags } from '../../dev/flags.ts';
import { startKafkaBroker } from '../../dev/kafka/broker.ts';

const { values } = readFlags('npm run bench:bus --', {
  options: {
    messages: { type: 'string', default: '20000' },
    pace: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
  },
});
const [messages, pace, seconds, rounds] = [values.messages, values.pace, values.seconds, values.rounds].map(
  Number,
) as [number, number, number, number];
const partitions = 12;
const publishers = 8;
const batch = 100;
/** As long as most of our messages. */
const filler = 'x'.repeat(200);

interface Contender {
  name: string;
  bus: Bus;
  createTopic: () => Promise<string>;
  close: () => Promise<void>;
}

async function kafka(): Promise<Contender> {
  const broker = await startKafkaBroker();
  const connection = { brokers: [broker.address], clientId: 'bench' };
  const bus = createKafkaBus({ connection, logger: silentLogger });
  return {
    name: 'kafka',
    bus,
    createTopic: async () => {
      const topic = `bench.${randomUUID()}`;
      await bus.ensureTopics({ [topic]: { partitions, retentionMs: 3_600_000, compacted: false } });
      return topic;
    },
    close: async () => {
      await bus.close();
      await broker.stop();
    },
  };
}

async function postgres(): Promise<Contender> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-bus-'));
  const server = await startPostgres({ dataDir: folder, logger: silentLogger });
  const { connectionString } = server;
  await migrate(connectionString);
  const bus = createPostgresBus({ connectionString, bootId: randomUUID(), logger: silentLogger });
  return {
    name: 'postgres',
    bus,
    createTopic: async () => {
      const topic = `bench.${randomUUID()}`;
      await bus.ensureTopics({ [topic]: partitions });
      return topic;
    },
    close: async () => {
      await bus.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const messageOf = (topic: string, index: number): OutgoingMessage => ({
  topic,
  key: String(index % 1_000),
  value: { index, at: performance.now(), filler },
});

/** Messages a second. */
async function rates({ bus, createTopic }: Contender): Promise<{ published: number; handled: number }> {
  const topic = await createTopic();
  let next = 0;
  const publish = async (): Promise<void> => {
    while (next < messages) {
      const from = next;
      next += batch;
      await bus.publish(Array.from({ length: batch }, (_, i) => messageOf(topic, from + i)));
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: publishers }, publish));
  const published = performance.now();

  const all = Promise.withResolvers<undefined>();
  let handled = 0;
  const subscription = await bus.subscribe(
    'bench',
    topic,
    () => {
      handled += 1;
      if (handled >= messages) all.resolve(undefined);
      return Promise.resolve();
    },
    { concurrency: partitions },
  );
  await all.promise;
  const end = performance.now();
  await subscription.close();
  const perSecond = (from: number, to: number): number => Math.round((messages * 1_000) / (to - from));
  return { published: perSecond(start, published), handled: perSecond(published, end) };
}

/** Milliseconds from the call of `publish` to the handler, at a steady pace. */
async function latencies({ bus, createTopic }: Contender): Promise<{ p50: number; p99: number }> {
  const topic = await createTopic();
  const taken: number[] = [];
  const total = pace * seconds;
  const all = Promise.withResolvers<undefined>();
  const subscription = await bus.subscribe(
    'bench',
    topic,
    (message) => {
      const { at } = JSON.parse(message.value) as { at: number };
      taken.push(performance.now() - at);
      if (taken.length >= total) all.resolve(undefined);
      return Promise.resolve();
    },
    { concurrency: partitions },
  );
  const start = performance.now();
  const publishing: Promise<void>[] = [];
  for (let index = 0; index < total; index++) {
    const due = start + (index * 1_000) / pace;
    if (due > performance.now()) await pause(due - performance.now());
    publishing.push(bus.publish([messageOf(topic, index)]));
  }
  await Promise.all(publishing);
  await all.promise;
  await subscription.close();
  const sorted = taken.sort((a, b) => a - b);
  const at = (share: number): number =>
    Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}

const contenders = [await kafka(), await postgres()];
try {
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const { published, handled } = await rates(contender);
      const { p50, p99 } = await latencies(contender);
      console.log(
        `round ${round}, ${contender.name}: ${published} published and ${handled} handled a second; ` +
          `at ${pace} a second p50 ${p50} ms, p99 ${p99} ms`,
      );
    }
  }
} finally {
  await Promise.all(contenders.map((contender) => contender.close()));
}
