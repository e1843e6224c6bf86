import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { type Logger, type Metrics, silentLogger } from '@millrace/platform';
import { createTestCertificate } from '@millrace/testing';
import { type KafkaBroker, startKafkaBroker } from '../../../../dev/kafka/broker.ts';
import { type SecureListener } from '../../../../dev/kafka/properties.ts';
import { type Handler, type OutgoingMessage } from '../bus.ts';
import { type KafkaConnection } from '../kafka/client.ts';
import { createKafkaBus, type KafkaBus } from '../kafka/kafka-bus.ts';
import { type KafkaTimes } from '../kafka/times.ts';
import { type TopicSettings } from '../topics.ts';
import { createCuttableProxy, type CuttableProxy } from './cuttable-proxy.ts';

/** Crashes are missed soon, and rebalances seen at once. */
export const quickTimes: Partial<KafkaTimes> = {
  sessionMs: 3_000,
  rebalanceMs: 6_000,
  heartbeatMs: 100,
  fetchMs: 100,
  requestMs: 3_000,
  connectMs: 1_000,
  publishMs: 6_000,
  handoverMs: 10_000,
  farewellMs: 1_000,
  sweepMs: 200,
};
export const patience = { timeoutMs: 90_000 };

export const topicSettings: TopicSettings = { partitions: 2, retentionMs: 3_600_000, compacted: false };

/** A way to the broker, through a line when there is one. */
export const connectionTo = (address: string, line?: CuttableProxy): KafkaConnection => ({
  brokers: [address],
  clientId: 'test',
  ...(line && {
    openSocket: (_host, _port, onConnect) => connect({ port: Number(new URL(line.url).port) }, onConnect),
  }),
});

interface OpenOptions {
  /** Over the line that the test can cut. */
  cuttable?: boolean;
  times?: Partial<KafkaTimes>;
  logger?: Logger;
  metrics?: Metrics;
}

/** A broker for a test file, a topic of two partitions for each of its tests, and buses that are closed after it. */
export interface KafkaFixture {
  readonly broker: KafkaBroker;
  /** What the broker's listener with TLS and SASL wants to see. */
  readonly login: SecureListener;
  readonly topic: string;
  readonly line: CuttableProxy;
  open(options?: OpenOptions): KafkaBus;
  createTopic(settings: Partial<TopicSettings>): Promise<string>;
  /** Messages with these numbers as bodies. */
  numbers(from: number, to: number, partition?: number): OutgoingMessage[];
  /** The group's lag by partition. */
  lagOf(bus: KafkaBus, group: string): Promise<number[]>;
}

export function kafkaFixture(): KafkaFixture {
  let broker: KafkaBroker;
  let login: SecureListener;
  let line: CuttableProxy;
  let topic = '';
  const buses: KafkaBus[] = [];
  const unheard: unknown[] = [];
  const onUnheard = (reason: unknown): unknown => unheard.push(reason);

  const fixture: KafkaFixture = {
    get broker() {
      return broker;
    },
    get login() {
      return login;
    },
    get topic() {
      return topic;
    },
    get line() {
      return line;
    },
    open: ({ cuttable = false, times, ...options } = {}) => {
      const bus = createKafkaBus({
        connection: connectionTo(broker.address, cuttable ? line : undefined),
        logger: silentLogger,
        times: { ...quickTimes, ...times },
        ...options,
      });
      buses.push(bus);
      return bus;
    },
    createTopic: async (settings) => {
      const name = `test.${randomUUID()}`;
      const bus = fixture.open();
      await bus.ensureTopics({ [name]: { ...topicSettings, ...settings } });
      await bus.close();
      return name;
    },
    numbers: (from, to, partition = 0) =>
      Array.from({ length: to - from }, (_, i) => ({ topic, key: 'k', value: from + i, partition })),
    lagOf: async (bus, group) => [...(await bus.lag(group, topic)).values()],
  };

  beforeAll(async () => {
    process.on('unhandledRejection', onUnheard);
    const certificate = await createTestCertificate('IP:127.0.0.1');
    login = { ...certificate, username: 'millrace', password: 'a long secret' };
    broker = await startKafkaBroker({ secure: login });
  });
  beforeEach(async () => {
    line = await createCuttableProxy(`tcp://${broker.address}`);
    topic = await fixture.createTopic({});
  });
  afterEach(async () => {
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
    await line.close();
    expect(unheard).toEqual([]);
  });
  afterAll(async () => {
    process.off('unhandledRejection', onUnheard);
    await broker.stop();
  });
  return fixture;
}

/** A handler that only remembers. */
export function collect(): { values: number[]; handle: Handler } {
  const values: number[] = [];
  const handle: Handler = (message) => {
    values.push(Number(message.value));
    return Promise.resolve();
  };
  return { values, handle };
}
