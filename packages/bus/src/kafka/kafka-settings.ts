import { flagText, listText } from '@millrace/platform';
import { z } from 'zod';
import { type KafkaConnection } from './client.ts';

const hostPort = z.string().regex(/^(\[[0-9a-f:]+\]|[a-z0-9.-]+):\d{1,5}$/i, 'is not host:port');

/** Settings of a process that uses Apache Kafka. */
export const kafkaSettings = {
  /** `host:port[,host:port]`: any of them tells of the others. */
  KAFKA_BROKERS: listText.pipe(z.array(hostPort).min(1, 'names no broker')),
  KAFKA_TLS: flagText,
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: z.string().min(1).optional(),
  KAFKA_SASL_PASSWORD: z.string().min(1).optional(),
  /** Copies of each topic that is made; a topic that is there keeps its own. */
  KAFKA_REPLICATION_FACTOR: z.coerce.number().int().min(1).max(32).default(3),
};

export type KafkaConfig = z.output<z.ZodObject<typeof kafkaSettings>>;

const saslNames = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;

/** For `superRefine`: what the settings must be together. */
export function checkKafkaSettings(
  config: Pick<KafkaConfig, (typeof saslNames)[number]>,
  context: z.RefinementCtx,
): void {
  const missing = saslNames.filter((name) => config[name] === undefined);
  if (missing.length === saslNames.length) return;
  for (const name of missing)
    context.addIssue({ code: 'custom', path: [name], message: 'is needed with the others of KAFKA_SASL_*' });
}

/** What the settings say of the way to the brokers. */
export function connectionOf(config: KafkaConfig): KafkaConnection {
  const {
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: username,
    KAFKA_SASL_PASSWORD: password,
  } = config;
  const hasLogin = mechanism !== undefined && username !== undefined && password !== undefined;
  return {
    brokers: config.KAFKA_BROKERS,
    clientId: 'millrace',
    ...(config.KAFKA_TLS && { tls: true }),
    ...(hasLogin && { sasl: { mechanism, username, password } }),
  };
}
