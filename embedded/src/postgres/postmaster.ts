import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { type Binaries } from './binaries.ts';
import { needs } from './cluster.ts';
import { ADMIN, connectionString, type Credentials } from './credentials.ts';
import { type DatabaseUser } from './database-user.ts';
import { PostgresError } from './errors.ts';
import { type Layout } from './layout.ts';
import { type LogFile } from './log-file.ts';
import { settings } from './settings.ts';

const POLL_MS = 25;
/** How long a start is tried again while the port is taken or backends of a killed server are still ending. */
const RETRY_MS = 30_000;
/** What PostgreSQL says in those two cases. */
const PASSING = /pre-existing shared memory block|Address already in use/;
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
  credentials: Credentials;
  log: LogFile;
}

/**
 * Starts the server on a free loopback port and resolves when it answers.
 * @throws PostgresError `start_failed` with the server's own words.
 */
export async function startPostmaster(deps: PostmasterDeps): Promise<Postmaster> {
  const until = Date.now() + RETRY_MS;
  for (;;) {
    const port = await freePort();
    const { child, lines } = spawnServer(deps, port);
    if (await answers(child, deps.credentials, port)) return postmaster(child, port);
    if (!lines.some((line) => PASSING.test(line)) || Date.now() > until) {
      const reason = lines.slice(-5).join(' ');
      throw new PostgresError('start_failed', `PostgreSQL does not start: ${reason}`);
    }
    await sleep(POLL_MS * 4);
  }
}

function spawnServer(
  { layout, binaries, user, log }: PostmasterDeps,
  port: number,
): { child: ChildProcess; lines: readonly string[] } {
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
  return { child, lines: log.follow(child.stderr) };
}

/** True when the server lets the administrator in; false when the process ended first. Recovery may take long. */
async function answers(child: ChildProcess, credentials: Credentials, port: number): Promise<boolean> {
  const url = connectionString(ADMIN, credentials.admin, port, 'postgres');
  let ended = child.pid === undefined;
  // `close`, not `exit`: only then has everything that it wrote been read.
  child.once('close', () => (ended = true));
  while (!ended) {
    try {
      const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
      client.on('error', () => undefined);
      await client.connect();
      await client.end();
      return true;
    } catch (error) {
      const code = (error as { code?: string }).code;
      // 57P03: the server is starting up or recovering. Anything else that is not about the socket is final.
      if (code !== undefined && code !== '57P03' && !code.startsWith('E')) {
        child.kill('SIGQUIT');
        throw new PostgresError('start_failed', `PostgreSQL refuses its administrator: ${String(error)}`);
      }
      await sleep(POLL_MS);
    }
  }
  return false;
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

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
