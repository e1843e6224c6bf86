import { flagText, listText } from '@millrace/platform';
import { z } from 'zod';

const hostPort = z.string().regex(/^(\[[0-9a-f:]+\]|[a-z0-9.-]+):\d{1,5}$/i, 'is not host:port');

/** Settings of a process that uses Apache Kafka. */
export const kafkaSettings = {
  /** `host:port[,host:port]`: any of them tells of the others. */
  KAFKA_BROKERS: listText.pipe(z.array(hostPort).min(1, 'names no broker')),
  KAFKA_TLS: flagText,
  /** PEM text of the authority that signed the brokers' certificates; the system's ones unless told. */
  KAFKA_TLS_CA: z.string().min(1).optional(),
  /** PEM texts by which brokers that ask for it know this process. */
  KAFKA_TLS_CERT: z.string().min(1).optional(),
  KAFKA_TLS_KEY: z.string().min(1).optional(),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: z.string().min(1).optional(),
  KAFKA_SASL_PASSWORD: z.string().min(1).optional(),
  /** Copies of each topic that is made; a topic that is there keeps its own. */
  KAFKA_REPLICATION_FACTOR: z.coerce.number().int().min(1).max(32).default(3),
};

export type KafkaConfig = z.output<z.ZodObject<typeof kafkaSettings>>;

/** Settings that are needed together or not at all. */
const groups = [
  ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'],
  ['KAFKA_TLS_CERT', 'KAFKA_TLS_KEY'],
] as const;
const tlsNames = ['KAFKA_TLS_CA', 'KAFKA_TLS_CERT', 'KAFKA_TLS_KEY'] as const;

/** For `superRefine`: what the settings must be together. */
export function checkKafkaSettings(
  config: Pick<KafkaConfig, (typeof groups)[number][number] | (typeof tlsNames)[number] | 'KAFKA_TLS'>,
  context: z.RefinementCtx,
): void {
  const complain = (name: string, message: string): void =>
    context.addIssue({ code: 'custom', path: [name], message });
  for (const names of groups) {
    const missing = names.filter((name) => config[name] === undefined);
    if (missing.length === names.length) continue;
    for (const name of missing)
      complain(name, `is needed with ${names.filter((n) => n !== name).join(' and ')}`);
  }
  for (const name of tlsNames) {
    if (config[name] !== undefined && !config.KAFKA_TLS) complain(name, 'has no effect without KAFKA_TLS');
  }
}
