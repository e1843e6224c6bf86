import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { newApiKey, newId } from '@millrace/domain';
import { startPostgres } from '@millrace/embedded/postgres';
import { silentLogger } from '@millrace/platform';
import { createDatabase, type Database, migrate } from '@millrace/store';
import { seedAccount } from '@millrace/testing';

/** One thing to ask for: the path of a video and a key that opens it. */
export interface BenchTarget {
  path: string;
  bearer: string;
}

export interface ApiRecord {
  connectionString: string;
  /** Of the server process; its children do the work. */
  postgresPid: number;
  targets: readonly BenchTarget[];
  close(): Promise<void>;
}

/** A PostgreSQL with the settings that the embedded mode ships, with accounts that have a project, a key and a video. */
export async function openApiRecord(accounts: number): Promise<ApiRecord> {
  const folder = await mkdtemp(path.join(tmpdir(), 'millrace-bench-api-'));
  const postgres = await startPostgres({ dataDir: folder, logger: silentLogger });
  const { connectionString } = postgres;
  await migrate(connectionString);
  const store = createDatabase({ connectionString, logger: silentLogger });
  const targets: BenchTarget[] = [];
  for (let n = 0; n < accounts; n++) targets.push(await addTarget(store));
  // As autovacuum does in time.
  await store.query('analyze');
  await store.close();
  return {
    connectionString,
    postgresPid: postgres.pid,
    targets,
    close: async () => {
      await postgres.stop();
      await rm(folder, { recursive: true });
    },
  };
}

async function addTarget(store: Database): Promise<BenchTarget> {
  const account = await seedAccount(store);
  const key = newApiKey(new Date());
  const videoId = newId('vid');
  await store.query(
    `insert into api_keys (id, project_id, name, scope, prefix, secret_hash, created_at)
     values ($1, $2, 'Bench', 'full', $3, $4, now())`,
    [key.id, account.projectId, key.prefix, key.secretHash],
  );
  await store.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, duration_ms, qualities,
       created_at, updated_at, ready_at)
     values ($1, $2, $3, 'A video of the bench', 'ready', 48123456, 61400, '{360p,720p,1080p}', now(), now(), now())`,
    [videoId, account.projectId, account.accountId],
  );
  return { path: `/v1/projects/${account.projectId}/videos/${videoId}`, bearer: key.value };
}
