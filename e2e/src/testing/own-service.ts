import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitFor } from '@millrace/testing';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const followParent = join(root, 'scripts/setup/follow-parent.mjs');

/** The whole ready file. */
const readyFile = z.strictObject({
  api: z.url(),
  cdn: z.url(),
  admin: z.url(),
  ops: z.record(z.string(), z.url()),
  dns: z.string().nullable(),
  adminToken: z.string().nullable(),
});
type Ready = z.infer<typeof readyFile>;

interface CommandResult {
  code: number;
  out: string;
  err: string;
}

/** The embedded service as an operator starts it, with a data folder of its own. */
export interface OwnService {
  ready: Ready;
  pid: number;
  dataDir: string;
  /** What every part's `/ready` answered when the ready file was seen. */
  readiness: number[];
  /** Whether the ready file is there. */
  isAnnounced(): boolean;
  /** Command lines of the living processes that name the data folder or were started by the service. */
  processes(): Promise<string[]>;
  /** Kills a process of PostgreSQL with SIGKILL, so that it restarts; resolves when all connections are lost. */
  crashDatabase(): Promise<void>;
  /** Runs a command of the command line on the data folder. */
  command(...args: string[]): Promise<CommandResult>;
  /** The JSON of a command that must succeed. */
  millrace(...args: string[]): Promise<Record<string, unknown>>;
  /** Sends a signal and waits for the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
  remove(): Promise<void>;
}

/** Starts it and waits until it says that it is ready. */
export async function startOwnService(
  flags: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<OwnService> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-own-'));
  const [dataDir, readyPath] = [join(folder, 'data'), join(folder, 'ready.json')];
  const main = join(root, 'embedded/src/main.ts');
  const args = ['--import', followParent, main, '--data', dataDir, '--ready-file', readyPath, ...flags];
  const service = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, ...env },
  });
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (isOver(service)) return service.exitCode;
    const ended = once(service, 'exit');
    service.kill(signal);
    await ended;
    return service.exitCode;
  };
  try {
    const appeared = (): boolean => isOver(service) || existsSync(readyPath);
    await waitFor(appeared, { timeoutMs: 90_000, what: 'the ready file' });
    const ready = readyFile.parse(JSON.parse(await readFile(readyPath, 'utf8')));
    const readiness = await Promise.all(
      Object.values(ready.ops).map(async (url) => (await fetch(`${url}/ready`)).status),
    );
    const command = (...words: string[]): Promise<CommandResult> =>
      new Promise((resolve) => {
        const cli = [join(root, 'embedded/src/cli/main.ts'), '--data', dataDir, ...words, '--json'];
        execFile(process.execPath, cli, (error, out, err) => {
          resolve({ code: error === null ? 0 : Number(error.code), out, err });
        });
      });
    return {
      ...{ ready, readiness, dataDir, pid: service.pid ?? 0, command, end },
      isAnnounced: () => existsSync(readyPath),
      crashDatabase: () => crashDatabase(dataDir),
      processes: () => processesOf(service.pid ?? 0, folder),
      millrace: async (...words) => {
        const { code, out, err } = await command(...words);
        if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${err}`);
        return JSON.parse(out) as Record<string, unknown>;
      },
      remove: async () => {
        await end('SIGTERM');
        await rm(folder, { recursive: true });
      },
    };
  } catch (error) {
    await end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

const isOver = (service: ChildProcess): boolean => service.exitCode !== null || service.signalCode !== null;

interface Process {
  pid: number;
  parent: number;
  /** Its words, or the title that it gave itself. */
  command: string;
}

async function allProcesses(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(
    pids.map(async (pid) => {
      const [command = '', status = ''] = await Promise.all(
        ['cmdline', 'status'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      );
      const parent = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
      return { pid: Number(pid), parent, command: command.replaceAll('\0', ' ') };
    }),
  );
}

async function processesOf(service: number, folder: string): Promise<string[]> {
  const all = await allProcesses();
  return all
    .filter(({ parent, command }) => parent === service || command.includes(folder))
    .map(({ command }) => command);
}

async function crashDatabase(dataDir: string): Promise<void> {
  const [postmaster] = (await readFile(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8')).split('\n');
  const connections = async (): Promise<Process[]> =>
    (await allProcesses()).filter(
      ({ parent, command }) => parent === Number(postmaster) && command.startsWith('postgres: '),
    );
  const isIdle = ({ command }: Process): boolean => / 127\.0\.0\.1\(\d+\) idle/.test(command);
  const { pid } = await waitFor(async () => (await connections()).find(isIdle), {
    what: 'an idle connection',
  });
  const before = new Set((await connections()).map((each) => each.pid));
  process.kill(pid, 'SIGKILL');
  await waitFor(async () => !(await connections()).some((each) => before.has(each.pid)), {
    what: 'every connection to end',
  });
}
