import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { versitygw } from './versitygw.ts';

export interface S3ServerOptions {
  /** Where its data is; a temporary folder, removed by `stop`, unless told. */
  dataDir?: string;
  /** A free one unless told. */
  port?: number;
  /** A process group of its own: a terminal's Ctrl-C is not for it. */
  detached?: boolean;
  /** With it `{bucket}.{virtualDomain}` works beside the path style. */
  virtualDomain?: string;
}

export interface S3Server {
  /** `http://127.0.0.1:PORT`; it stays the same over a kill. */
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { accessKeyId: string; secretAccessKey: string };
  /** Undefined while it is not running. */
  readonly pid: number | undefined;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and data. */
  start(): Promise<void>;
  /** Ends it, and removes its folder when that was temporary. */
  stop(): Promise<void>;
}

const host = '127.0.0.1';
const region = 'us-east-1';
/** It listens on loopback alone. */
const credentials = { accessKeyId: 'millrace-dev', secretAccessKey: 'millrace-dev-secret' };
const startMs = 20_000;

/** Starts a real S3 server on loopback and resolves when it answers. The first start on a machine builds it. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const program = await versitygw();
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'millrace-s3-')));
  const port = options.port ?? (await freePort());
  const endpoint = `http://${host}:${port}`;
  const folders = { buckets: join(dataDir, 'buckets'), iam: join(dataDir, 'iam') };
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true });
  const args = [
    ...['--port', `${host}:${port}`, '--region', region, '--iam-dir', folders.iam],
    ...['--health', '/healthz', '--keep-alive', '--quiet', '--cors-allow-origin', '*'],
    ...(options.virtualDomain === undefined ? [] : ['--virtual-domain', options.virtualDomain]),
    ...['posix', folders.buckets],
  ];
  let child: ChildProcess | null = null;
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    ending.kill(signal);
    await once(ending, 'exit');
  };
  const start = async (): Promise<void> => {
    child = launch(program, args, options.detached ?? false);
    await untilHealthy(child, `${endpoint}/healthz`);
  };
  const stop = async (): Promise<void> => {
    await end('SIGTERM');
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...{ endpoint, region, credentials, start, stop },
    get pid() {
      return child?.pid;
    },
    kill: () => end('SIGKILL'),
  };
}

/** It ends with its parent, where the system can see to that. */
function launch(program: string, args: readonly string[], detached: boolean): ChildProcess {
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));
  const [command, before] =
    setpriv === undefined ? [program, []] : [setpriv, ['--pdeathsig', 'KILL', '--', program]];
  const env = {
    PATH: process.env['PATH'] ?? '',
    ROOT_ACCESS_KEY: credentials.accessKeyId,
    ROOT_SECRET_KEY: credentials.secretAccessKey,
  };
  return spawn(command, [...before, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'], detached });
}

async function untilHealthy(child: ChildProcess, url: string): Promise<void> {
  let told = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    told = (told + text).slice(-4_000);
  });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`versitygw ended with ${code ?? 'a signal'}: ${told}`)));
  });
  // Past the start nobody waits for it.
  failed.catch(() => undefined);
  const until = Date.now() + startMs;
  for (;;) {
    const answer = fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
      (response) => response.arrayBuffer().then(() => response.ok),
      () => false,
    );
    if (await Promise.race([answer, failed])) return;
    if (Date.now() > until) throw new Error(`versitygw did not start within ${startMs} ms: ${told}`);
    await sleep(20);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
