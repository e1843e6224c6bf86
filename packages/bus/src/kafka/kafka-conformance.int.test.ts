import { silentLogger } from '@millrace/platform';
import { startKafkaBroker } from '../../../../dev/kafka/broker.ts';
import { missingForKafka } from '../../../../dev/kafka/jars.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { busConformance, type ConformanceWorld } from '../conformance.ts';
import { createCuttableProxy } from '../testing/cuttable-proxy.ts';
import { connectionTo, quickTimes as times, topicSettings } from '../testing/kafka-fixture.ts';
import { createKafkaBus } from './kafka-bus.ts';

describeWith(missingForKafka(), 'Apache Kafka', () => {
  busConformance('Kafka', kafkaWorld);
});

async function kafkaWorld(): Promise<ConformanceWorld> {
  const broker = await startKafkaBroker();
  const admin = createKafkaBus({ connection: connectionTo(broker.address), logger: silentLogger, times });
  const proxies: { close(): Promise<void> }[] = [];
  let topics = 0;
  return {
    createTopic: async (partitions) => {
      topics += 1;
      const name = `conformance.${topics}`;
      const settings = { ...topicSettings, partitions };
      await admin.ensureTopics({ [name]: settings, [`${name}.dead`]: settings });
      return name;
    },
    member: async () => {
      const proxy = await createCuttableProxy(`tcp://${broker.address}`);
      proxies.push(proxy);
      const bus = createKafkaBus({
        connection: connectionTo(broker.address, proxy),
        logger: silentLogger,
        times,
      });
      return { bus, kill: async () => proxy.cut() };
    },
    teardown: async () => {
      await admin.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await broker.stop();
    },
  };
}
