import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';

/** Writes JSON so that readers, and the next start after any crash, see the old file or the new one, whole. */
export function writeJsonFile(path: string, value: unknown, mode = 0o600): void {
  const aside = `${path}.${randomUUID()}`;
  const file = openSync(aside, 'wx', mode);
  writeSync(file, `${JSON.stringify(value, null, 2)}\n`);
  fsyncSync(file);
  closeSync(file);
  renameSync(aside, path);
}

/** The file's JSON, or undefined when there is none. @throws SyntaxError when it is damaged */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
