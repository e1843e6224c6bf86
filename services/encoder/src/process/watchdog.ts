import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ProcessEnd, type ProcessLimits } from './encoder-process.ts';

const intervalMs = 500;

export interface Watchdog {
  /** To be told of everything that the process gets done. */
  progressed(): void;
  stop(): void;
}

/**
 * Watches one running process and says once, by `onBreach`, which limit it broke. Processes run on the
 * machine's own time, so this takes no clock.
 *
 * @param options.position a number that changes while the process gets on
 */
export function watch(
  pid: number,
  limits: ProcessLimits,
  { position, onBreach }: { position: () => number; onBreach: (end: ProcessEnd, message: string) => void },
): Watchdog {
  const startedAt = performance.now();
  let progressedAt = startedAt;
  let lastPosition = position();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const breach = async (): Promise<[ProcessEnd, string] | null> => {
    const now = performance.now();
    if (position() !== lastPosition) {
      lastPosition = position();
      progressedAt = now;
    }
    if (now - startedAt > limits.wallMs) return ['wall', `it ran longer than ${limits.wallMs} ms`];
    if (now - progressedAt > limits.stallMs) return ['stall', `no progress for ${limits.stallMs} ms`];
    const memory = await residentBytes(pid);
    if (memory > limits.memoryBytes)
      return ['memory', `it used more than ${limits.memoryBytes} bytes of memory`];
    const output = await folderBytes(limits.outputFolder);
    if (output > limits.outputBytes) return ['output', `it wrote more than ${limits.outputBytes} bytes`];
    return null;
  };
  const look = async (): Promise<void> => {
    const found = await breach();
    // Stopped while it looked: the process has ended, its id may be another's by now.
    if (stopped) return;
    if (found !== null) {
      stopped = true;
      onBreach(...found);
    } else schedule();
  };
  const schedule = (): void => {
    timer = setTimeout(() => void look(), intervalMs);
  };
  schedule();
  return {
    progressed: () => {
      progressedAt = performance.now();
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Resident memory by `/proc`; 0 where there is none (other systems) or the process is gone. */
async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

async function folderBytes(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(path.join(folder, name)).then(
        (file) => file.size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
