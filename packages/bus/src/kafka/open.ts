import { type Clock, type Logger } from '@millrace/platform';
import { type Bus } from '../bus.ts';
import { type KafkaConnection } from './client.ts';
import { createKafkaBus } from './kafka-bus.ts';
import { type KafkaConfig } from './kafka-settings.ts';

/** How to reach the brokers, as the settings say. */
export function kafkaConnection(config: KafkaConfig, clientId: string): KafkaConnection {
  const {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  } = config;
  return {
    brokers: config.KAFKA_BROKERS,
    clientId,
    ...(config.KAFKA_TLS ? { tls: true } : {}),
    ...(mechanism === undefined || username === undefined || password === undefined
      ? {}
      : { sasl: { mechanism, username, password } }),
  };
}

/** Opens the bus as the settings say. @param parts.name what brokers call this process */
export const openBus = (
  config: KafkaConfig,
  { name, clock, logger }: { name: string; clock: Clock; logger: Logger },
): Bus => createKafkaBus({ connection: kafkaConnection(config, `millrace-${name}`), clock, logger });
