import { type Logger, silentLogger } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { createTestDatabase, seedAccount, type SeededAccount, seedProcessingVideo } from '@millrace/testing';

/** A record with an account whose videos can be held. */
export interface TestRecord {
  readonly connectionString: string;
  readonly store: Database;
  readonly account: SeededAccount;
  /** A video that plays. */
  newVideo(videoId?: string): Promise<string>;
  statusOf(videoId: string): Promise<string>;
  close(): Promise<void>;
}

export async function createTestRecord(logger: Logger = silentLogger): Promise<TestRecord> {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const store = createDatabase({ connectionString, logger });
  const account = await seedAccount(store);
  return {
    ...{ connectionString, store, account },
    newVideo: async (videoId) => {
      const id = await seedProcessingVideo(store, account, videoId === undefined ? {} : { videoId });
      await store.query(`update videos set status = 'ready', ready_at = now() where id = $1`, [id]);
      return id;
    },
    statusOf: async (videoId) => {
      const { rows } = await store.query<{ status: string }>('select status from videos where id = $1', [
        videoId,
      ]);
      return rows[0]?.status ?? 'unknown';
    },
    close: async () => {
      await store.close();
      await database.drop();
    },
  };
}
