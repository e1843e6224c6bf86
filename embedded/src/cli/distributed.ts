import { type KafkaBus } from '@millrace/bus/kafka';
import { checkKafkaSettings, kafkaSettings } from '@millrace/bus/kafka-settings';
import { checkS3Settings, s3Settings } from '@millrace/objects/s3-settings';
import { createMetrics, loadConfig, type Logger, systemClock } from '@millrace/platform';
import { type Database, databaseSettings, directUrl, migrate, openDatabase } from '@millrace/store';
import { z } from 'zod';
import { type Backend } from './backend.ts';

const configs = {
  database: z.object(databaseSettings),
  kafka: z.object(kafkaSettings).superRefine(checkKafkaSettings),
  s3: z.object(s3Settings).superRefine(checkS3Settings),
};

/**
 * The distributed services by their settings, each part of which is read when it is used. Nothing is brought up to date
 * unless asked: the services of a release before may be running on it.
 */
export function distributedBackend(
  env: Readonly<Record<string, string | undefined>>,
  logger: Logger,
): Backend {
  let database: Database | undefined;
  let kafka: Promise<KafkaBus> | undefined;
  const openKafka = async (): Promise<KafkaBus> => {
    // The clients of Kafka and S3 are large, and the embedded service needs neither.
    const { openBus } = await import('@millrace/bus/kafka');
    return openBus(loadConfig(configs.kafka, env), { name: 'cli', clock: systemClock, logger });
  };
  const bus = (): Promise<KafkaBus> => (kafka ??= openKafka());
  return {
    store: () => {
      const config = loadConfig(configs.database, env);
      return Promise.resolve(
        (database ??= openDatabase(config, { logger, metrics: createMetrics({ service: 'cli' }) })),
      );
    },
    bus,
    migrate: (waitMs = 0) =>
      migrate(directUrl(loadConfig(configs.database, env)), {
        waitMs,
        onWait: (reason) => logger.warn({ err: reason }, 'the database lets the migration wait'),
      }),
    ensureTopics: async () => (await bus()).ensureTopics(),
    prepareBucket: async () => {
      const { prepareObjects } = await import('@millrace/objects/s3');
      return prepareObjects(loadConfig(configs.s3, env), { logger });
    },
    close: async () => {
      await (await kafka?.catch(() => undefined))?.close();
      await database?.close();
    },
  };
}
