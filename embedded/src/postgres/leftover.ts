import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Logger } from '@millrace/platform';
import { identifyProcess, isRunning, type ProcessIdentity } from '../data-folder/process-identity.ts';
import { PostgresError } from './errors.ts';

const POLL_MS = 20;
const QUIT_WAIT_MS = 10_000;
const KILL_WAIT_MS = 10_000;

/**
 * Ends the PostgreSQL that a killed process of ours left running on this data. Called only while holding the data
 * folder's lock, when nobody can still be using it. Committed rows are safe: an immediate shutdown is a crash to
 * PostgreSQL, and the next start replays its log.
 */
export async function endLeftover(cluster: string, logger: Logger): Promise<void> {
  const pidFile = join(cluster, 'postmaster.pid');
  const pid = readPid(pidFile);
  if (pid === undefined) return;
  const leftover = identifyProcess(pid);
  if (leftover && isPostmasterOf(pid, cluster)) {
    logger.warn({ pid }, 'ending the database that the last run left behind');
    const ended =
      (await end(leftover, 'SIGQUIT', QUIT_WAIT_MS)) || (await end(leftover, 'SIGKILL', KILL_WAIT_MS));
    if (!ended) {
      throw new PostgresError(
        'in_use',
        `PostgreSQL process ${pid} still uses ${cluster} and cannot be ended`,
      );
    }
  }
  disownPidFile(pidFile, pid);
}

async function end(leftover: ProcessIdentity, signal: NodeJS.Signals, waitMs: number): Promise<boolean> {
  const until = Date.now() + waitMs;
  if (isRunning(leftover)) process.kill(leftover.pid, signal);
  while (isRunning(leftover)) {
    if (Date.now() > until) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** The first line of PostgreSQL's own lock file. */
function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]);
    return Number.isInteger(pid) && pid > 1 ? pid : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** True for a `postgres` program that was started with `-D <cluster>`; its backends have other command lines. */
function isPostmasterOf(pid: number, cluster: string): boolean {
  const [program = '', ...args] = commandLine(pid);
  const folder = args[args.indexOf('-D') + 1];
  return basename(program) === 'postgres' && args.includes('-D') && folder === cluster;
}

function commandLine(pid: number): string[] {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .split(' ');
  } catch {
    return [];
  }
}

/**
 * PostgreSQL takes any process of its user that has the id in the file for a server of its own: a stranger that was
 * given the id since, or a zombie that nobody reaps. It never takes its parent for one, so our id goes into the file.
 * The file itself must stay: it names the shared memory by which PostgreSQL notices backends that outlived their
 * server.
 */
function disownPidFile(pidFile: string, pid: number): void {
  if (readPid(pidFile) !== pid) return;
  const [, ...rest] = readFileSync(pidFile, 'utf8').split('\n');
  writeFileSync(pidFile, [String(process.pid), ...rest].join('\n'));
}
