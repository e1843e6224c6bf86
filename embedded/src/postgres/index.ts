import { mkdirSync, realpathSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger } from '@millrace/platform';
import { LockHeldError, type LockRole, type ProcessLock, takeLock } from '../data-folder/process-lock.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { ensureCluster } from './cluster.ts';
import { ADMIN, connectionString, readCredentials, SERVICE } from './credentials.ts';
import { findDatabaseUser } from './database-user.ts';
import { PostgresError } from './errors.ts';
import { endLeftover } from './leftover.ts';
import { layoutOf } from './layout.ts';
import { openLogFile } from './log-file.ts';
import { type Postmaster, startPostmaster } from './postmaster.ts';
import { ensureServiceDatabase } from './service-database.ts';

export { PostgresError } from './errors.ts';

/** A service that was just killed, or is ending, gets this long to let go of the data folder. */
const GRACE_FOR_SERVICE_MS = 2_000;
/** A command ends by itself. */
const GRACE_FOR_COMMAND_MS = 60_000;
const POLL_MS = 50;

export interface PostgresOptions {
  /** The data folder; made when missing. */
  dataDir: string;
  logger: Logger;
  /** Who asks. A living `command` on the same folder is waited for, a living `service` is an error. */
  role?: LockRole;
  /** A free one unless told. */
  port?: number;
  /** The PostgreSQL to use; by default the one that npm installed. */
  binaries?: Binaries;
}

/** A running embedded PostgreSQL, whose data folder this process alone may use. */
export interface EmbeddedPostgres {
  /** For an ordinary role that owns the database; holds a password. */
  connectionString: string;
  /** Of the server process. */
  pid: number;
  /** Resolves when the server has ended, by `stop` or by itself. */
  exited: Promise<void>;
  /** Ends the server (fast shutdown) and gives up the data folder. Close your connections first. */
  stop(): Promise<void>;
}

/**
 * Runs the real PostgreSQL in the data folder: makes the database the first time, ends what a killed run left behind,
 * and resolves when the server answers. Works as root and as any user, also below folders of mode 0700.
 * @throws PostgresError with what the operator can do: the folder is in use, made by another major version, damaged, …
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { role = 'service' } = options;
  // 0711: the system user `postgres` may pass to its own part, and nobody else can list or read anything.
  mkdirSync(options.dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  const dataDir = realpathSync(options.dataDir);
  const lock = await lockFolder(layoutOf(dataDir).lock, role);
  try {
    return await start(dataDir, lock, options.binaries ?? findBinaries(), options);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function start(
  dataDir: string,
  lock: ProcessLock,
  binaries: Binaries,
  { logger, port: wanted }: PostgresOptions,
): Promise<EmbeddedPostgres> {
  const user = await findDatabaseUser();
  const layout = await ensureCluster(dataDir, binaries, user, logger);
  const credentials = readCredentials(layout.credentials);
  await endLeftover(layout.cluster, logger);
  const log = openLogFile(layout.log);
  let server: Postmaster | undefined;
  try {
    server = await startPostmaster({ layout, binaries, user, log }, wanted);
    const { pid, port, exited } = server;
    await ensureServiceDatabase(
      connectionString(ADMIN, credentials.admin, port, 'postgres'),
      credentials.service,
    );
    const stop = stopper(server, () => {
      log.close();
      lock.release();
    });
    logger.info({ pid, port }, 'database ready');
    return {
      connectionString: connectionString(SERVICE, credentials.service, port, SERVICE),
      pid,
      exited,
      stop,
    };
  } catch (error) {
    await server?.stop();
    log.close();
    throw error;
  }
}

/** Stops once, however often it is asked. */
function stopper(server: Postmaster, afterwards: () => void): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  return () => (stopped ??= server.stop().then(afterwards));
}

/** @throws PostgresError `in_use` when another process keeps the folder. */
async function lockFolder(path: string, role: LockRole): Promise<ProcessLock> {
  const since = Date.now();
  for (;;) {
    try {
      return takeLock(path, role);
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
      const { pid, role: holderRole } = error.holder;
      const grace = holderRole === 'command' ? GRACE_FOR_COMMAND_MS : GRACE_FOR_SERVICE_MS;
      if (Date.now() - since > grace) {
        const message = `the data folder is in use by process ${pid}: stop it first, or choose another folder (${path})`;
        throw new PostgresError('in_use', message, { cause: error });
      }
      await sleep(POLL_MS);
    }
  }
}
