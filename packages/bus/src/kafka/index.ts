import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { connectionOf, type KafkaConfig } from './kafka-settings.ts';
import { createKafkaBus, type KafkaBus } from './kafka-bus.ts';

export { type KafkaConnection } from './client.ts';
export { type TopicDifference } from './ensure-topics.ts';
export { createKafkaBus, type KafkaBus, type KafkaBusOptions } from './kafka-bus.ts';

/** The bus of a process that is configured with `kafkaSettings`. Connects when it is first needed. */
export const openBus = (
  config: KafkaConfig,
  parts: { clock?: Clock; logger: Logger; metrics?: Metrics },
): KafkaBus =>
  createKafkaBus({
    ...parts,
    connection: connectionOf(config),
    replication: config.KAFKA_REPLICATION_FACTOR,
  });
