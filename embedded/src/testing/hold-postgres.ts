/**
 * Runs a PostgreSQL on a data folder until it is killed, for tests of what a kill leaves behind. Arguments: the data
 * folder and, to use another than npm's, the folder of a PostgreSQL installation. Prints one line of JSON.
 */
import { silentLogger } from '@millrace/platform';
import { binariesIn } from '../postgres/binaries.ts';
import { PostgresError, startPostgres } from '../postgres/index.ts';

const [dataDir = '', installation] = process.argv.slice(2);
const say = (answer: object): boolean => process.stdout.write(`${JSON.stringify(answer)}\n`);
try {
  const { connectionString, pid } = await startPostgres({
    dataDir,
    logger: silentLogger,
    ...(installation === undefined ? {} : { binaries: binariesIn(installation) }),
  });
  say({ connectionString, pid });
  setInterval(() => undefined, 1_000);
} catch (error) {
  if (!(error instanceof PostgresError)) throw error;
  say({ code: error.code, message: error.message });
}
