import { randomUUID } from 'node:crypto';
import { createPostgresBus, type PostgresBus } from '@millrace/bus/postgres';
import { type Logger } from '@millrace/platform';
import { createDatabase, type Database, migrate, type Migrated } from '@millrace/store';

/** The record and the bus over one PostgreSQL. */
export interface OpenRecord {
  store: Database;
  bus: PostgresBus;
  /** What opening it did to the schema. */
  migrated: Migrated;
  close(): Promise<void>;
}

/** Brings the schema and topics up to date and opens the record and the bus. */
export async function openRecord(connectionString: string, logger: Logger): Promise<OpenRecord> {
  const migrated = await migrate(connectionString);
  if (migrated.applied.length > 0) logger.info({ applied: migrated.applied }, 'database migrated');
  if (migrated.newer.length > 0)
    logger.warn({ newer: migrated.newer }, 'the schema is newer than this build');
  const store = createDatabase({ connectionString, max: 24, logger });
  const bus = createPostgresBus({ connectionString, bootId: randomUUID(), logger });
  try {
    await bus.ensureTopics();
  } catch (error) {
    await bus.close();
    await store.close();
    throw error;
  }
  return {
    store,
    bus,
    migrated,
    close: async () => {
      await bus.close();
      await store.close();
    },
  };
}
