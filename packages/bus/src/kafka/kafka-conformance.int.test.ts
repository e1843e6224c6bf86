import { connect } from 'node:net';
import { silentLogger } from '@millrace/platform';
import { type KafkaBroker, startKafkaBroker } from '../../../../dev/kafka/broker.ts';
import { missingForKafka } from '../../../../dev/kafka/jars.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { busConformance, type ConformanceWorld } from '../conformance.ts';
import { createCuttableProxy, type CuttableProxy } from '../testing/cuttable-proxy.ts';
import { type KafkaConnection } from './client.ts';
import { createKafkaBus } from './kafka-bus.ts';

/** Crashes are missed soon, and rebalances seen at once. */
const times = { sessionMs: 3_000, rebalanceMs: 6_000, heartbeatMs: 100, fetchMs: 100, handoverMs: 10_000 };

describeWith(missingForKafka(), 'Apache Kafka', () => {
  busConformance('Kafka', kafkaWorld);
});

/** A way to the broker, through a line when there is one. */
const connectionTo = ({ address }: KafkaBroker, line?: CuttableProxy): KafkaConnection => ({
  brokers: [address],
  clientId: 'conformance',
  ...(line && {
    openSocket: (_host, _port, onConnect) => connect({ port: Number(new URL(line.url).port) }, onConnect),
  }),
});

async function kafkaWorld(): Promise<ConformanceWorld> {
  const broker = await startKafkaBroker();
  const admin = createKafkaBus({ connection: connectionTo(broker), logger: silentLogger, times });
  const proxies: { close(): Promise<void> }[] = [];
  let topics = 0;
  return {
    createTopic: async (partitions) => {
      topics += 1;
      const name = `conformance.${topics}`;
      await admin.ensureTopics({ [name]: { partitions, retentionMs: 3_600_000, compacted: false } });
      return name;
    },
    member: async () => {
      const proxy = await createCuttableProxy(`tcp://${broker.address}`);
      proxies.push(proxy);
      const bus = createKafkaBus({ connection: connectionTo(broker, proxy), logger: silentLogger, times });
      return { bus, kill: async () => proxy.cut() };
    },
    teardown: async () => {
      await admin.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await broker.stop();
    },
  };
}
