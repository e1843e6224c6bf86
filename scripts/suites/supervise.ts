import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { processesOf } from './left-behind.ts';

export interface SuperviseOptions {
  /** An empty folder of this run, which the caller removes. The run's temporary files go into it. */
  folder: string;
  /** How long nothing may begin or end, in milliseconds. */
  idleMs: number;
  env?: NodeJS.ProcessEnv;
}

export interface Supervised {
  code: number;
  /** What was wrong beside it, for people: what hung, and which processes or files were left behind. */
  complaints: string[];
}

const lookMs = 500;
/** Processes that were told to end may take this long. */
const endingMs = 3_000;

/**
 * Runs tests in a session and with a temporary folder (`TMPDIR`) of their own. Ends them when they have told of no
 * step in the file `MILLRACE_TEST_PROGRESS` for too long, and afterwards all that they left running.
 */
export async function supervise(
  command: string,
  args: readonly string[],
  { folder, idleMs, env = {} }: SuperviseOptions,
): Promise<Supervised> {
  const [temporary, progress] = [join(folder, 'tmp'), join(folder, 'progress')];
  // A database server's own user must get through to its data.
  chmodSync(folder, 0o755);
  mkdirSync(temporary);
  writeFileSync(progress, '');
  const child = spawn(command, args, {
    stdio: 'inherit',
    detached: true,
    env: { ...process.env, ...env, TMPDIR: temporary, MILLRACE_TEST_PROGRESS: progress },
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      resolve(code ?? 1);
    });
  });
  if (child.pid === undefined) return { code: await ended, complaints: [] };
  const session = child.pid;
  const signals = passSignalsOn(session);
  const hung = watch(progress, idleMs, session);
  const code = await ended;
  const complaints = [...hung(), ...(await endAll(session, folder))];
  signals();
  for (const name of readdirSync(temporary)) {
    if (name.startsWith('millrace-')) complaints.push(`left behind: ${name} in the temporary folder`);
  }
  return { code, complaints };
}

/** Ends a session that makes no progress. What it returns ends the watch and says what hung. */
function watch(progress: string, idleMs: number, session: number): () => string[] {
  const complaints: string[] = [];
  const timer = setInterval(() => {
    if (complaints.length > 0 || Date.now() - statSync(progress).mtimeMs < idleMs) return;
    const running = readFileSync(progress, 'utf8') || 'no test runs, but something keeps it from ending';
    complaints.push(`nothing has happened for ${idleMs / 1_000} s: ${running}`);
    kill(-session, 'SIGKILL');
  }, lookMs);
  return () => {
    clearInterval(timer);
    return complaints;
  };
}

/** Ends what still runs after a moment; says what that was. */
async function endAll(session: number, folder: string): Promise<string[]> {
  const left = await remaining(session, folder);
  for (const { pid } of left) kill(pid, 'SIGKILL');
  if (left.length > 0) await remaining(session, folder);
  return left.map(({ pid, command }) => `still runs: ${pid} ${command}`);
}

/** What is there of a run when none is left, or when those who end have had their time. */
async function remaining(session: number, folder: string): Promise<ReturnType<typeof processesOf>> {
  const until = Date.now() + endingMs;
  for (;;) {
    const left = processesOf(session, folder);
    if (left.length === 0 || Date.now() > until) return left;
    await sleep(100);
  }
}

/**
 * A terminal's Ctrl-C does not reach another session. What it returns stops passing signals on, and follows the one
 * that came.
 */
function passSignalsOn(session: number): () => void {
  let got: NodeJS.Signals | undefined;
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const pass = (signal: NodeJS.Signals): void => {
    got = signal;
    kill(-session, signal);
  };
  for (const name of names) process.on(name, pass);
  return () => {
    for (const name of names) process.off(name, pass);
    if (got !== undefined) process.kill(process.pid, got);
  };
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}
