import { statSync } from 'node:fs';
import { dirname } from 'node:path';

interface User {
  uid: number;
  gid: number;
}

/**
 * The first of the paths, or of the folders above them, that the user may not pass by its mode: `enter` asks for the
 * folders above, `execute` for the file itself. Access lists are not looked at. Paths must be absolute and real.
 */
export function firstClosedPath(
  paths: readonly string[],
  user: User,
  ask: 'enter' | 'execute',
): string | undefined {
  const asked = ask === 'execute' ? paths : paths.flatMap(foldersAbove);
  return [...new Set(asked)].find((path) => !mayPass(path, user));
}

/** From the root down, without the path itself. */
function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...foldersAbove(parent), parent];
}

function mayPass(path: string, user: User): boolean {
  const { mode, uid, gid } = statSync(path);
  if (uid === user.uid) return (mode & 0o100) !== 0;
  if (gid === user.gid) return (mode & 0o010) !== 0;
  return (mode & 0o001) !== 0;
}
