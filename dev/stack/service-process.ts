import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const followParent = join(root, 'scripts/setup/follow-parent.mjs');
const readyMs = 90_000;
const pollMs = 50;
/** Longer than a service's own stop may take. */
const stopMs = 40_000;
/** Between an end and the next start; one that ends again soon waits longer. */
const firstWaitMs = 250;
const longestWaitMs = 10_000;
const healthyMs = 30_000;

export interface ServiceProcessOptions {
  /** `encoder-2` */
  name: string;
  /** `encoder`: whose main file is run. */
  service: string;
  /** All of its environment, at first. */
  env: NodeJS.ProcessEnv;
  /** Address of its operations server. */
  ops: string;
  /** Its log, which is added to. */
  logPath: string;
  /** Called when it was started again: it has another pid. */
  onRestart: () => void;
  /** Told what people want to know. */
  say: (line: string) => void;
}

/** A process of a service that ended though nobody stopped it. */
export interface ServiceEnd {
  pid: number;
  /** Its exit code, or the signal that ended it. */
  how: string;
  /** In milliseconds since 1970, as its log has it. */
  startedAt: number;
  endedAt: number;
}

/** A service as a process of its own, which is started again when it ends by itself. */
export class ServiceProcess {
  readonly name: string;
  readonly ops: string;
  /** In their order. */
  readonly ends: ServiceEnd[] = [];
  readonly #options: ServiceProcessOptions;
  readonly #stopping = new AbortController();
  #env: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  /** The process that a roll-out has ended. */
  #replaced: ChildProcess | undefined;
  #kept: Promise<void> | undefined;

  constructor(options: ServiceProcessOptions) {
    this.name = options.name;
    this.ops = options.ops;
    this.#options = options;
    this.#env = options.env;
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Starts it and keeps it running. Resolves when it says that it is ready.
   * @throws when it ends before, or `signal` aborts
   */
  async start(signal: AbortSignal): Promise<void> {
    const child = this.#spawn();
    await untilReady(child, this.#options, AbortSignal.any([signal, this.#stopping.signal]));
    this.#kept = this.#keep(child);
  }

  /** Sends it a signal, as somebody else might. @returns whether there was a process to get it */
  kill(signal: NodeJS.Signals): boolean {
    return this.#child?.kill(signal) ?? false;
  }

  /** Resolves when it says that it is ready, after it was started again. */
  async untilReady(signal: AbortSignal): Promise<void> {
    while (!(await isReady(this.ops))) await sleep(pollMs, undefined, { signal });
  }

  /**
   * Replaces it by one with other settings, as a roll-out does. Resolves when that says that it is ready.
   * @param change gets the environment that it had
   */
  async rollOut(change: (env: NodeJS.ProcessEnv) => NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
    this.#env = change(this.#env);
    this.#replaced = this.#child;
    if (this.#child !== undefined) await end(this.#child);
    await this.untilReady(signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the stack stops'));
    if (this.#child !== undefined) await end(this.#child);
    await this.#kept;
  }

  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #keep(first: ChildProcess): Promise<void> {
    let waitMs = firstWaitMs;
    for (let child = first; ; child = this.#again()) {
      const startedAt = Date.now();
      if (!isOver(child)) await once(child, 'exit');
      if (this.#isStopping()) return;
      if (child === this.#replaced) continue;
      const endedAt = Date.now();
      this.ends.push({ pid: child.pid ?? 0, how: endOf(child), startedAt, endedAt });
      if (endedAt - startedAt > healthyMs) waitMs = firstWaitMs;
      this.#options.say(`${this.name} ended with ${endOf(child)}; it is started again`);
      await sleep(waitMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      if (this.#isStopping()) return;
      waitMs = Math.min(2 * waitMs, longestWaitMs);
    }
  }

  #again(): ChildProcess {
    const child = this.#spawn();
    this.#options.onRestart();
    return child;
  }

  /** In a process group of its own: a terminal's Ctrl-C is for the stack, which stops it. It follows when that is killed. */
  #spawn(): ChildProcess {
    const { service, logPath } = this.#options;
    const log = openSync(logPath, 'a', 0o600);
    try {
      const main = join(root, `services/${service}/src/main.ts`);
      const child = spawn(process.execPath, ['--import', followParent, main], {
        ...{ env: this.#env, detached: true, stdio: ['ignore', log, log, 'ipc'] },
      });
      this.#child = child;
      return child;
    } finally {
      closeSync(log);
    }
  }
}

/** Resolves when it has stopped, in good order or in the end by force. */
async function end(child: ChildProcess): Promise<void> {
  if (isOver(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  // One that is stopped (SIGSTOP) would not hear it.
  child.kill('SIGCONT');
  const late = setTimeout(() => child.kill('SIGKILL'), stopMs);
  await ended;
  clearTimeout(late);
}

async function untilReady(
  child: ChildProcess,
  { name, ops, logPath }: ServiceProcessOptions,
  signal: AbortSignal,
): Promise<void> {
  const deadline = Date.now() + readyMs;
  while (!(await isReady(ops))) {
    signal.throwIfAborted();
    const why = isOver(child)
      ? `ended with ${endOf(child)}`
      : Date.now() > deadline
        ? `was not ready within ${readyMs / 1_000} s`
        : null;
    if (why !== null) throw new Error(`${name} ${why}; its last words (${logPath}):\n${lastLines(logPath)}`);
    await sleep(pollMs);
  }
}

const isReady = (ops: string): Promise<boolean> =>
  fetch(`${ops}/ready`, { signal: AbortSignal.timeout(1_000) }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );

const isOver = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;
const endOf = (child: ChildProcess): string => String(child.exitCode ?? child.signalCode ?? 'nothing');
const lastLines = (path: string): string =>
  readFileSync(path, 'utf8').trimEnd().split('\n').slice(-8).join('\n');
