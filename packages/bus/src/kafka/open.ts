import { type Clock, type Logger, type Metrics } from '@millrace/platform';
import { type KafkaConnection } from './client.ts';
import { createKafkaBus, type KafkaBus } from './kafka-bus.ts';
import { type KafkaConfig } from './kafka-settings.ts';

/** How to reach the brokers, as the settings say. */
function kafkaConnection(config: KafkaConfig, clientId: string): KafkaConnection {
  const {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  } = config;
  const hasLogin = mechanism !== undefined && username !== undefined && password !== undefined;
  const [ca, cert, key] = [config.KAFKA_TLS_CA, config.KAFKA_TLS_CERT, config.KAFKA_TLS_KEY];
  return {
    brokers: config.KAFKA_BROKERS,
    clientId,
    ...(config.KAFKA_TLS && { tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } }),
    ...(hasLogin && { sasl: { mechanism, username, password } }),
  };
}

/**
 * Opens the bus as the settings say; it connects when it is first needed.
 *
 * @param parts.name what brokers call this process
 */
export const openBus = (
  config: KafkaConfig,
  { name, ...parts }: { name: string; clock: Clock; logger: Logger; metrics?: Metrics },
): KafkaBus =>
  createKafkaBus({
    ...parts,
    connection: kafkaConnection(config, `millrace-${name}`),
    replication: config.KAFKA_REPLICATION_FACTOR,
  });
