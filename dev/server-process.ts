import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ServerProcess {
  /** Undefined while it is not running. */
  readonly pid: number | undefined;
  /** Starts it, again after `end`; resolves when it is ready. */
  start(): Promise<void>;
  /** Sends it a signal that it lives through. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Ends it and waits until it is gone. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

export interface ServerCommand {
  command: readonly [program: string, ...args: string[]];
  /** All of its environment; this process's unless told. */
  env?: NodeJS.ProcessEnv;
  /** A process group of its own: a terminal's Ctrl-C is not for it. */
  detached: boolean;
  /** Rejects when it ends before it is ready. Reads its output, which is piped. */
  untilReady: (child: ChildProcess) => Promise<void>;
}

/** A server of another project as a child, which ends with its parent where the system can see to that. */
export function serverProcess({ command, env, detached, untilReady }: ServerCommand): ServerProcess {
  let child: ChildProcess | null = null;
  return {
    get pid() {
      return child?.pid;
    },
    start: async () => {
      const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((path) => existsSync(path));
      const [program, ...args] =
        setpriv === undefined ? command : ([setpriv, '--pdeathsig', 'KILL', '--', ...command] as const);
      child = spawn(program, args, {
        ...{ stdio: ['ignore', 'pipe', 'pipe'], detached },
        ...(env === undefined ? {} : { env }),
      });
      await untilReady(child);
    },
    signal: (signal) => void child?.kill(signal),
    end: async (signal) => {
      const ending = child;
      child = null;
      if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
      ending.kill(signal);
      await once(ending, 'exit');
    },
  };
}

/** Of a log, what an error tells. */
const lastWords = 4_000;

/**
 * Resolves when a server says these words in its output; rejects with the end of it when the server ends before, or
 * does not say them in time. Reads the output for as long as the server runs.
 */
export async function untilSaid(
  child: ChildProcess,
  { name, words, withinMs }: { name: string; words: string; withinMs: number },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  let log = '';
  const fail = (why: string): void => reject(new Error(`${name} ${why}: ${log}`));
  const timer = setTimeout(() => fail(`was not ready within ${withinMs} ms`), withinMs);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      // Sought before the log is cut: on a busy machine one piece may hold the words and much after them.
      const grown = log + text;
      if (grown.includes(words)) resolve(undefined);
      log = grown.slice(-lastWords);
    });
  }
  child.once('error', reject);
  child.once('exit', (code) => fail(`ended with ${code ?? 'a signal'}`));
  await promise.finally(() => clearTimeout(timer));
}

/** The folder that was told, else a temporary one, which `remove` removes. */
export async function serverFolder(
  told: string | undefined,
  prefix: string,
): Promise<{ dataDir: string; isTemporary: boolean; remove: () => Promise<void> }> {
  const dataDir = told ?? (await mkdtemp(join(tmpdir(), prefix)));
  const isTemporary = told === undefined;
  return {
    ...{ dataDir, isTemporary },
    remove: async () => {
      if (isTemporary) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
