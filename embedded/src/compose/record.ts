import { randomUUID } from 'node:crypto';
import { createPostgresBus, type PostgresBus } from '@millrace/bus/postgres';
import { type Logger } from '@millrace/platform';
import { createDatabase, type Database, migrate } from '@millrace/store';

/** The record and the bus over one PostgreSQL. */
export interface OpenRecord {
  store: Database;
  bus: PostgresBus;
  /** The migrations that were missing. */
  migrated: readonly string[];
  close(): Promise<void>;
}

/** Brings the schema and topics up to date and opens the record and the bus. */
export async function openRecord(connectionString: string, logger: Logger): Promise<OpenRecord> {
  const applied = await migrate(connectionString);
  if (applied.length > 0) logger.info({ applied }, 'database migrated');
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
    migrated: applied,
    close: async () => {
      await bus.close();
      await store.close();
    },
  };
}
