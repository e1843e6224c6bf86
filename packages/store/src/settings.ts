import { type Logger, type Metrics } from '@millrace/platform';
import { z } from 'zod';
import { createDatabase, type Database } from './db.ts';

const postgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'is not a postgres:// address' });

/** Settings of a process that uses the record. */
export const databaseSettings = {
  /** The record; may lead through a pooler in transaction mode that knows prepared statements. */
  DATABASE_URL: postgresUrl,
  /** The record without a pooler, which LISTEN and migrations need; `DATABASE_URL` unless told. */
  DATABASE_DIRECT_URL: postgresUrl.optional(),
  /** Connections of this process at most. */
  DATABASE_CONNECTIONS: z.coerce.number().int().min(1).max(1_000).default(10),
};

type DatabaseConfig = z.output<z.ZodObject<typeof databaseSettings>>;

/** Opens the record as the settings say. */
export const openDatabase = (
  config: DatabaseConfig,
  { logger, metrics }: { logger: Logger; metrics: Metrics },
): Database =>
  createDatabase({
    connectionString: config.DATABASE_URL,
    max: config.DATABASE_CONNECTIONS,
    ...{ logger, metrics },
  });

/** The address for LISTEN and migrations. */
export const directUrl = (config: DatabaseConfig): string =>
  config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
