import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Logger } from '@millrace/platform';
import { type Binaries, majorVersion } from './binaries.ts';
import { ADMIN, createCredentials } from './credentials.ts';
import { type DatabaseUser } from './database-user.ts';
import { PostgresError } from './errors.ts';
import { type Layout, layoutOf } from './layout.ts';

/**
 * Makes sure that the data folder holds a database of the programs' version. A new one is made beside its place and
 * renamed into it, so that an interruption leaves nothing but a folder which the next start removes.
 * @throws PostgresError `version_mismatch`, `damaged` or `init_failed`.
 */
export async function ensureCluster(
  dataDir: string,
  binaries: Binaries,
  user: DatabaseUser,
  logger: Logger,
): Promise<Layout> {
  const layout = layoutOf(dataDir);
  removeUnfinished(layout);
  if (existsSync(layout.home)) {
    await checkVersion(layout, binaries);
    return layout;
  }
  const unfinished = layoutOf(dataDir, `${layout.home}.new-${randomUUID()}`);
  const started = Date.now();
  logger.info({ folder: layout.home }, 'making the database');
  await initialise(unfinished, binaries, user);
  renameSync(unfinished.home, layout.home);
  syncFolder(dirname(layout.home));
  logger.info({ milliseconds: Date.now() - started }, 'database made');
  return layout;
}

function removeUnfinished(layout: Layout): void {
  const parent = dirname(layout.home);
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(layout.home)}.new-`)) continue;
    rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

async function checkVersion(layout: Layout, binaries: Binaries): Promise<void> {
  let found: string;
  try {
    found = readFileSync(join(layout.cluster, 'PG_VERSION'), 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new PostgresError('closed_folder', `${layout.cluster} cannot be read: ${String(error)}`, {
        cause: error,
      });
    }
    const message = `${layout.home} exists but holds no database; move it away or restore it from a backup`;
    throw new PostgresError('damaged', message, { cause: error });
  }
  const wanted = await majorVersion(binaries);
  if (found === wanted) return;
  throw new PostgresError(
    'version_mismatch',
    `${layout.cluster} was made by PostgreSQL ${found}, and this release brings PostgreSQL ${wanted}: ` +
      'start it with the release that made it, or restore a dump of it into a new data folder',
  );
}

async function initialise(layout: Layout, binaries: Binaries, user: DatabaseUser): Promise<void> {
  mkdirSync(layout.home, { mode: 0o700 });
  mkdirSync(layout.cluster, { mode: 0o700 });
  const passwordFile = join(layout.home, 'initdb-password');
  const credentials = createCredentials(layout.credentials);
  writeFileSync(passwordFile, credentials.admin, { mode: 0o600 });
  if (user.owner) {
    chmodSync(layout.home, 0o711);
    chownSync(layout.cluster, user.owner.uid, user.owner.gid);
    chownSync(passwordFile, user.owner.uid, user.owner.gid);
  }
  const args = ['-D', layout.cluster, '--username', ADMIN, '--pwfile', passwordFile];
  const encoding = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C'];
  const [command, commandArgs] = user.command(binaries.initdb, [...args, ...encoding], {
    onParentDeath: 'KILL',
    ...needs(layout, binaries),
  });
  await run(command, commandArgs);
  rmSync(passwordFile);
  syncFolder(layout.home);
}

/** What PostgreSQL's processes must reach, for `DatabaseUser.command`. */
export function needs(layout: Layout, binaries: Binaries): { paths: string[]; programs: string[] } {
  const inside = ['lib/library', 'share/postgresql/file'].map((path) => join(binaries.folder, path));
  return {
    paths: [layout.cluster, ...inside],
    programs: [binaries.initdb, binaries.postgres],
  };
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/', env: {} });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code === 0) return;
  throw new PostgresError('init_failed', `the database could not be made: ${errors.trim()}`);
}

/** Makes a rename in the folder durable. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  fsyncSync(folder);
  closeSync(folder);
}
