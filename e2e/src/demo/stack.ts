import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const followParent = join(root, 'scripts/setup/follow-parent.mjs');
const opsServers = z.record(z.string(), z.url());
const readyFile = z.object({ api: z.url(), cdn: z.url(), ops: opsServers.default({}) });
const processesFile = z.object({
  // To signal 0 is to signal the own process group.
  pids: z.record(z.string(), z.int().positive()),
  ops: opsServers,
});

/** A running service, known by its public addresses and its operator's command line alone. */
export interface Stack {
  api: string;
  cdn: string;
  /** Addresses of operations servers, by service. */
  ops: Record<string, string>;
  /** Runs a command of the operator's command line and returns its JSON. */
  millrace(...args: string[]): Promise<unknown>;
  /** Ends what was started and removes what it wrote. */
  stop(): Promise<void>;
  /** What it wrote last when it has ended by itself, else null. */
  lastWords(): string | null;
}

/** A service that was started here, and so can be killed. */
export interface StartedStack extends Stack {
  /** Ends the main process, or its whole process group, with SIGKILL and waits until it is gone. */
  kill(whole: boolean): Promise<void>;
  /** Its processes as they are now, where each service is one: pids, and addresses of operations servers. */
  processes(): Promise<z.output<typeof processesFile>>;
}

const startTimeoutMs = 120_000;
/** The first start of Kafka and the S3 server on a machine fetches and builds them. */
const firstBuildMs = 15 * 60_000;
const commandTimeoutMs = 60_000;
const pollMs = 100;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** The operator's command line on a data folder. @param release whose; ours unless told */
export const commandLine =
  (dataDir: string, signal: AbortSignal, release = root) =>
  async (...args: string[]): Promise<unknown> => {
    const cli = join(release, 'embedded/src/cli/main.ts');
    const command = [cli, '--data', dataDir, ...args, '--json'];
    const { stdout } = await promisify(execFile)(process.execPath, command, {
      signal,
      timeout: commandTimeoutMs,
    });
    return JSON.parse(stdout);
  };

/** Uses a service that runs already: the addresses of its ready file, and its data folder for the command line. */
export async function attachStack(readyPath: string, dataDir: string, signal: AbortSignal): Promise<Stack> {
  const ready = readyFile.parse(JSON.parse(await readFile(readyPath, 'utf8')));
  const millrace = commandLine(dataDir, signal);
  return { ...ready, millrace, stop: () => Promise.resolve(), lastWords: () => null };
}

/** Starts the service with a data folder of its own, and waits until it says that it is ready. */
export async function startStack(options: {
  dataDir?: string | undefined;
  /** On Kafka and S3, each service a process of its own, instead of the embedded one. */
  distributed?: boolean;
  env?: NodeJS.ProcessEnv;
  /** Folder of another release's sources, which is started instead of ours. */
  release?: string;
  signal: AbortSignal;
}): Promise<StartedStack> {
  const release = options.release ?? root;
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-'));
  const dataDir = options.dataDir ?? join(folder, 'data');
  const readyPath = join(folder, 'ready.json');
  const log: string[] = [];
  const where = ['--data', dataDir, '--ready-file', readyPath];
  const [main, ...flags] =
    options.distributed === true
      ? [join(release, 'dev/stack/main.ts'), ...where, '--encoders', '2']
      : [join(release, 'embedded/src/main.ts'), ...where, '--dev'];
  // A group of its own: a terminal's Ctrl-C must not end the service before the demo has tidied up. It follows
  // when this process is killed.
  const service = spawn(process.execPath, ['--import', followParent, main, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
    // With NODE_ENV=production it would refuse --dev.
    env: { ...process.env, NODE_ENV: undefined, ...options.env },
  });
  for (const stream of [service.stdout, service.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      log.push(text);
      if (log.length > 200) log.shift();
    });
  }
  const lastWords = (): string => log.join('').slice(-4_000);
  const stop = async (): Promise<void> => {
    await end(service);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await untilReady(service, readyPath, {
      timeoutMs: options.distributed === true ? firstBuildMs : startTimeoutMs,
      signal: options.signal,
    });
    return {
      ...(await attachStack(readyPath, dataDir, options.signal)),
      millrace: commandLine(dataDir, options.signal, release),
      stop,
      lastWords: () => (isOver(service) ? lastWords() : null),
      kill: (whole) => kill(service, whole),
      processes: async () => processesFile.parse(JSON.parse(await readFile(readyPath, 'utf8'))),
    };
  } catch (error) {
    await stop();
    options.signal.throwIfAborted();
    throw new Error(`the service did not start:\n${lastWords()}`, { cause: error });
  }
}

async function untilReady(
  service: ChildProcess,
  readyPath: string,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (Date.now() < deadline) {
    signal.throwIfAborted();
    if (isOver(service)) throw new Error(`it ended with ${service.exitCode ?? service.signalCode ?? ''}`);
    const there = await readFile(readyPath).catch(() => null);
    if (there) return;
    await pause(pollMs);
  }
  throw new Error(`it was not ready within ${timeoutMs / 1000} s`);
}

const isOver = (service: ChildProcess): boolean => service.exitCode !== null || service.signalCode !== null;

async function end(service: ChildProcess): Promise<void> {
  if (isOver(service)) return;
  const ended = new Promise((resolve) => service.once('exit', resolve));
  service.kill('SIGTERM');
  const late = setTimeout(() => service.kill('SIGKILL'), 40_000);
  await ended;
  clearTimeout(late);
}

async function kill(service: ChildProcess, whole: boolean): Promise<void> {
  if (service.pid === undefined || isOver(service)) throw new Error('the service does not run');
  const ended = new Promise((resolve) => service.once('exit', resolve));
  process.kill(whole ? -service.pid : service.pid, 'SIGKILL');
  await ended;
}
