import { readdir, readFile } from 'node:fs/promises';
import { median } from './numbers.ts';

/**
 * Bytes that a process and its children keep in memory: what they share, such as the database's buffers, counts once,
 * and pages of files, which the system may drop, do not count. Null when it has ended, or this user may not look.
 * Linux only.
 */
export async function residentBytes(pid: number): Promise<number | null> {
  const own = await ownBytes(pid);
  if (own === null) return null;
  const children = await Promise.all((await childrenOf(pid)).map(ownBytes));
  return children.reduce<number>((sum, bytes) => sum + (bytes ?? 0), own);
}

async function ownBytes(pid: number): Promise<number | null> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
    .catch(() => readFile(`/proc/${pid}/status`, 'utf8'))
    .catch(() => '');
  const lines = [...text.matchAll(/^(?:Pss_Anon|Pss_Shmem|RssAnon):\s+(\d+) kB/gm)];
  return lines.length === 0 ? null : lines.reduce((sum, [, kibibytes]) => sum + Number(kibibytes) * 1_024, 0);
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const parents = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      return { pid: Number(pid), parent: Number(/^PPid:\s+(\d+)/m.exec(text)?.[1]) };
    }),
  );
  return parents.filter((each) => each.parent === parent).map(({ pid }) => pid);
}

export interface Sample {
  /** Seconds from the start. */
  at: number;
  bytes: number;
}

/** How a series of samples grows. */
export interface Growth {
  firstBytes: number;
  lastBytes: number;
  /** The last third's median to the first third's. */
  ratio: number;
  /** By the middle of all slopes between two samples (Theil–Sen), so that single heights do not count. */
  bytesPerMinute: number;
}

export function growthOf(samples: readonly Sample[]): Growth {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const middle = (part: readonly Sample[]): number => median(part.map(({ bytes }) => bytes));
  const [firstBytes, lastBytes] = [middle(samples.slice(0, third)), middle(samples.slice(-third))];
  const slopes = samples.flatMap((a, i) =>
    samples.slice(i + 1).map((b) => (b.bytes - a.bytes) / (b.at - a.at)),
  );
  return { firstBytes, lastBytes, ratio: lastBytes / firstBytes, bytesPerMinute: 60 * median(slopes) };
}
