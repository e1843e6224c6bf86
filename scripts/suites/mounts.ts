import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const table = '/proc/self/mounts';

/**
 * Places under a folder on which something is mounted, the last one first.
 * @param mounts a table as proc(5) has it: the second word of a line is the place, with blanks as octal numbers
 */
export const mountsUnder = (folder: string, mounts: string): string[] =>
  mounts
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .map((place) =>
      place.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
    )
    .filter((place) => place.startsWith(`${folder}/`))
    .reverse();

/** Unmounts what tests that were killed left under a folder, which could not be removed otherwise. */
export function unmountUnder(folder: string): void {
  if (!existsSync(table)) return;
  for (const place of mountsUnder(folder, readFileSync(table, 'latin1')))
    execFileSync('umount', ['--lazy', Buffer.from(place, 'latin1').toString('utf8')]);
}
