import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const followParent = join(root, 'scripts/setup/follow-parent.mjs');

/** A service as a process of its own. */
export interface WorkerProcess {
  /** Asks it to end, as an orchestrator does, and resolves with its exit code. */
  terminate(): Promise<number | null>;
  /** Resolves when it has ended, with the signal that it died of. */
  readonly ended: Promise<NodeJS.Signals | null>;
  /** What it wrote last. */
  lastWords(): string;
}

/** Runs a service's main file with these settings. */
export function startWorker(service: string, env: NodeJS.ProcessEnv): WorkerProcess {
  const main = join(root, `services/${service}/src/main.ts`);
  const child: ChildProcess = spawn(process.execPath, ['--import', followParent, main], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { PATH: process.env['PATH'], ...env },
  });
  let told = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      told = (told + text).slice(-4_000);
    });
  }
  const ended = once(child, 'exit').then(() => child.signalCode);
  return {
    ended,
    lastWords: () => told,
    terminate: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await ended;
      }
      return child.exitCode;
    },
  };
}

/** An ffmpeg that makes videos at their own speed and says when it has begun one, so that a test can reach in. */
export interface PacedFfmpeg {
  /** The `PATH` of a process that is to find it. */
  path: string;
  hasBegun(): Promise<boolean>;
}

/** @param folder of its own */
export const pacedFfmpeg = async (folder: string): Promise<PacedFfmpeg> => {
  const begun = join(folder, 'begun');
  const before = `case "$*" in *360p.mp4*) set -- -re "$@"; : > '${begun}';; esac`;
  return { path: await wrappedFfmpeg(folder, before), hasBegun: () => exists(begun) };
};

/**
 * An ffmpeg that makes no video until it is let go, and says when it was asked to.
 *
 * @param folder of its own
 */
export async function heldFfmpeg(folder: string): Promise<PacedFfmpeg & { letGo(): Promise<void> }> {
  const [begun, go] = [join(folder, 'begun'), join(folder, 'go')];
  const wait = `while [ ! -e '${go}' ]; do PATH='${process.env['PATH'] ?? ''}' sleep 0.1; done`;
  const before = `case "$*" in *360p.mp4*) : > '${begun}'; ${wait};; esac`;
  return {
    path: await wrappedFfmpeg(folder, before),
    hasBegun: () => exists(begun),
    letGo: () => writeFile(go, ''),
  };
}

/**
 * An ffmpeg that no sound can be made with: whoever starts it for that is killed, as a container is that wants more memory
 * than it may have.
 *
 * @param folder of its own
 * @returns the `PATH` of a process that is to find it
 */
export const deadlyFfmpeg = (folder: string): Promise<string> =>
  wrappedFfmpeg(folder, `case "$*" in *audio-0.mp4*) kill -KILL "$PPID"; exit 1;; esac`);

async function wrappedFfmpeg(folder: string, before: string): Promise<string> {
  await mkdir(folder);
  // Found once more by its name, behind this folder.
  const real = `$(PATH='${process.env['PATH'] ?? ''}' command -v ffmpeg)`;
  await writeFile(join(folder, 'ffmpeg'), `#!/bin/sh\n${before}\nexec "${real}" "$@"\n`, { mode: 0o755 });
  return [folder, process.env['PATH']].join(delimiter);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
