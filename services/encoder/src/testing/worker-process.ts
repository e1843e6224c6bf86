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
  return {
    lastWords: () => told,
    terminate: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const exit = once(child, 'exit');
        child.kill('SIGTERM');
        await exit;
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
export async function pacedFfmpeg(folder: string): Promise<PacedFfmpeg> {
  await mkdir(folder);
  const begun = join(folder, 'begun');
  // Found once more by its name, behind this folder.
  const real = `$(PATH='${process.env['PATH'] ?? ''}' command -v ffmpeg)`;
  const script = `#!/bin/sh
case "$*" in *360p.mp4*) set -- -re "$@"; : > '${begun}';; esac
exec "${real}" "$@"
`;
  await writeFile(join(folder, 'ffmpeg'), script, { mode: 0o755 });
  return {
    path: [folder, process.env['PATH']].join(delimiter),
    hasBegun: () =>
      access(begun).then(
        () => true,
        () => false,
      ),
  };
}
