import { type Bus } from '@millrace/bus';
import { type Logger } from '@millrace/platform';
import { type Database, type Migrated } from '@millrace/store';
import { openRecord, type OpenRecord } from '../compose/record.ts';
import { readRunFile } from '../data-folder/run-file.ts';
import { OperatorsProblemError } from '../operators-problem.ts';
import { startPostgres } from '../postgres/index.ts';

/** What commands work on. Each part is opened at its first use; `close` closes what was. */
export interface Backend {
  store(): Promise<Database>;
  bus(): Promise<Bus>;
  /**
   * Brings the schema up to date.
   * @param waitMs how long a database that is not there yet is waited for, in milliseconds
   * @throws Error when the database has another history than this build
   */
  migrate(waitMs?: number): Promise<Migrated>;
  /** Creates the topics that are missing. @returns what is there and not as it should be */
  ensureTopics(): Promise<readonly object[]>;
  /** Makes the bucket what the services need. @returns what was done */
  prepareBucket(): Promise<object>;
  close(): Promise<void>;
}

/** The embedded service of a data folder, whether it runs or not. Opening it brings schema and topics up to date. */
export function embeddedBackend(dataDir: string, logger: Logger): Backend {
  let opening: Promise<{ record: OpenRecord; close(): Promise<void> }> | undefined;
  const record = async (): Promise<OpenRecord> =>
    (await (opening ??= openDataFolder(dataDir, logger))).record;
  return {
    store: async () => (await record()).store,
    bus: async () => (await record()).bus,
    migrate: async () => (await record()).migrated,
    ensureTopics: async () => {
      await record();
      return [];
    },
    prepareBucket: () =>
      Promise.reject(new OperatorsProblemError('the embedded service keeps objects in its data folder')),
    close: async () => {
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

/** The record of a data folder: its running service's, else by a PostgreSQL of our own for as long as we need it. */
async function openDataFolder(
  dataDir: string,
  logger: Logger,
): Promise<{ record: OpenRecord; close(): Promise<void> }> {
  const running = readRunFile(dataDir);
  if (running) {
    const record = await openRecord(running.connectionString, logger).catch(() => null);
    // A service that was killed leaves its file behind.
    if (record) return { record, close: () => record.close() };
  }
  const postgres = await startPostgres({ dataDir, logger, role: 'command' });
  try {
    const record = await openRecord(postgres.connectionString, logger);
    return {
      record,
      close: async () => {
        await record.close();
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}
