/** Runs a PostgreSQL on a data folder until it is killed, for tests of what a kill leaves behind. */
import { silentLogger } from '@millrace/platform';
import { startPostgres } from '../postgres/index.ts';

const { connectionString, pid } = await startPostgres({
  dataDir: process.argv[2] ?? '',
  logger: silentLogger,
});
process.stdout.write(JSON.stringify({ connectionString, pid }));
setInterval(() => undefined, 1_000);
