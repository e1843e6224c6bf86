import { type ChildProcess } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../free-ports.ts';
import { serverFolder, serverProcess } from '../server-process.ts';
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
  const { dataDir, remove } = await serverFolder(options.dataDir, 'millrace-s3-');
  const [free = 0] = await freePorts(1, host);
  const port = options.port ?? free;
  const endpoint = `http://${host}:${port}`;
  const folders = { buckets: join(dataDir, 'buckets'), iam: join(dataDir, 'iam') };
  for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true });
  const args = [
    ...['--port', `${host}:${port}`, '--region', region, '--iam-dir', folders.iam],
    ...['--health', '/healthz', '--keep-alive', '--quiet', '--cors-allow-origin', '*'],
    ...(options.virtualDomain === undefined ? [] : ['--virtual-domain', options.virtualDomain]),
    ...['posix', folders.buckets],
  ];
  const server = serverProcess({
    command: [program, ...args],
    env: {
      PATH: process.env['PATH'] ?? '',
      ROOT_ACCESS_KEY: credentials.accessKeyId,
      ROOT_SECRET_KEY: credentials.secretAccessKey,
    },
    detached: options.detached ?? false,
    untilReady: (child) => untilHealthy(child, `${endpoint}/healthz`),
  });
  const stop = async (): Promise<void> => {
    await server.end('SIGTERM');
    await remove();
  };
  try {
    await server.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...{ endpoint, region, credentials, stop },
    start: () => server.start(),
    get pid() {
      return server.pid;
    },
    kill: () => server.end('SIGKILL'),
  };
}

async function untilHealthy(child: ChildProcess, url: string): Promise<void> {
  let told = '';
  // It has nothing to say there, and must not wait for a reader.
  child.stdout?.resume();
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
