import { readdir, readFile } from 'node:fs/promises';

/** Clock ticks a second in `/proc`; fixed for user space on Linux. */
const ticksPerSecond = 100;

/**
 * User and system CPU seconds so far of this process, or of its children that have ended and been waited for.
 * Reads `/proc/self/stat` (Linux only).
 */
export async function cpuSecondsOf(whose: 'self' | 'children'): Promise<number> {
  return (await readStat('self'))?.[whose] ?? 0;
}

/** The same of a process and all its children, those that have ended too. */
export async function cpuSecondsBelow(pid: number): Promise<number> {
  const parent = await readStat(String(pid));
  const others = await Promise.all(
    (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(readStat),
  );
  const alive = others
    .filter((each) => each?.parent === pid)
    .reduce((sum, each) => sum + (each?.self ?? 0), 0);
  return alive + (parent?.self ?? 0) + (parent?.children ?? 0);
}

/** Null for a process that has ended meanwhile. */
async function readStat(pid: string): Promise<{ parent: number; self: number; children: number } | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  if (stat === null) return null;
  // The name in parentheses may hold spaces; the state after it is field 3, the parent 4, utime 14.
  const [, parent, ...fields] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const seconds = (user: number): number => ((fields[user] ?? 0) + (fields[user + 1] ?? 0)) / ticksPerSecond;
  return { parent: parent ?? 0, self: seconds(9), children: seconds(11) };
}
