import { readFile } from 'node:fs/promises';

/** Clock ticks a second in `/proc`; fixed for user space on Linux. */
const ticksPerSecond = 100;

/**
 * User and system CPU seconds so far of this process, or of its children that have ended and been waited for.
 * Reads `/proc/self/stat` (Linux only).
 */
export async function cpuSecondsOf(whose: 'self' | 'children'): Promise<number> {
  const stat = await readFile('/proc/self/stat', 'utf8');
  // The name in parentheses may hold spaces; utime is field 14, and the state after it field 3.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const [user, system] = whose === 'self' ? [fields[11], fields[12]] : [fields[13], fields[14]];
  return ((user ?? 0) + (system ?? 0)) / ticksPerSecond;
}
