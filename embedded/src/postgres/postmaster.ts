import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { probePort } from '@millrace/platform';
import { type Binaries } from './binaries.ts';
import { needs } from './cluster.ts';
import { type DatabaseUser } from './database-user.ts';
import { PostgresError } from './errors.ts';
import { type Layout } from './layout.ts';
import { type FollowedLog, type LogFile } from './log-file.ts';
import { settings } from './settings.ts';

const RETRY_PAUSE_MS = 100;
/** How long a start is tried again while the port is taken or backends of a killed server are still ending. */
const RETRY_MS = 30_000;
/** What PostgreSQL says in those two cases, and when it is ready (in English: LC_ALL=C). */
const PASSING = /pre-existing shared memory block|Address already in use/;
const READY = /database system is ready to accept connections/;
const FAST_STOP_MS = 30_000;
const IMMEDIATE_STOP_MS = 5_000;

/** A running PostgreSQL server. */
export interface Postmaster {
  pid: number;
  port: number;
  /** Resolves when the server has ended, by `stop` or not. */
  exited: Promise<void>;
  /** Ends it, letting open transactions roll back; harder when that takes too long. */
  stop(): Promise<void>;
}

export interface PostmasterDeps {
  layout: Layout;
  binaries: Binaries;
  user: DatabaseUser;
  log: LogFile;
}

/**
 * Starts the server on the loopback port, or a free one, and resolves when it takes connections.
 * @throws PostgresError `start_failed` with the server's own words.
 */
export async function startPostmaster(deps: PostmasterDeps, wanted?: number): Promise<Postmaster> {
  const until = Date.now() + RETRY_MS;
  for (;;) {
    const port = wanted ?? (await probePort('127.0.0.1'));
    const { child, log } = spawnServer(deps, port);
    if (await becomesReady(child, log)) return postmaster(child, port);
    if (!log.lines.some((line) => PASSING.test(line)) || Date.now() > until) {
      const reason = log.lines.slice(-5).join(' ');
      throw new PostgresError('start_failed', `PostgreSQL does not start: ${reason}`);
    }
    await sleep(RETRY_PAUSE_MS);
  }
}

function spawnServer(
  { layout, binaries, user, log }: PostmasterDeps,
  port: number,
): { child: ChildProcess; log: FollowedLog } {
  const args = ['-D', layout.cluster, ...settings(port)];
  const [command, commandArgs] = user.command(binaries.postgres, args, {
    onParentDeath: 'QUIT',
    ...needs(layout, binaries),
  });
  const child = spawn(command, commandArgs, {
    // A process group of its own: Ctrl-C in a terminal is for the services first, which stop the database last.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: '/',
    env: { LC_ALL: 'C' },
  });
  child.on('error', () => undefined);
  return { child, log: log.follow(child.stderr) };
}

/** True when the server says that it takes connections; false when it ended first. Recovery may take long. */
async function becomesReady(child: ChildProcess, log: FollowedLog): Promise<boolean> {
  // `close`, not `exit`: only then has everything that it wrote been read.
  const ended = new Promise<boolean>((resolve) => child.once('close', () => resolve(false)));
  return Promise.race([log.saw(READY).then(() => true), ended]);
}

function postmaster(child: ChildProcess, port: number): Postmaster {
  const exited = hasEnded(child) ? Promise.resolve() : once(child, 'exit').then(() => undefined);
  const endWithin = async (signal: NodeJS.Signals, ms: number): Promise<boolean> => {
    child.kill(signal);
    const timer = new AbortController();
    const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
    const ended = await Promise.race([exited.then(() => true), late]);
    timer.abort();
    return ended;
  };
  return {
    pid: child.pid ?? 0,
    port,
    exited,
    stop: async () => {
      if (hasEnded(child)) return;
      if (await endWithin('SIGINT', FAST_STOP_MS)) return;
      if (await endWithin('SIGQUIT', IMMEDIATE_STOP_MS)) return;
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
