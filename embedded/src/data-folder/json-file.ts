import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { OperatorsProblemError } from '../operators-problem.ts';

/** A file of the data folder holds something else than we wrote. */
export class DamagedFileError extends OperatorsProblemError {
  override readonly name = 'DamagedFileError';
  constructor(path: string, options?: ErrorOptions) {
    super(`${path} is damaged: restore it from a backup of the data folder`, options);
  }
}

/** Writes JSON so that readers, and the next start after any crash, see the old file or the new one, whole. */
export function writeJsonFile(path: string, value: unknown, mode = 0o600): void {
  const aside = `${path}.${randomUUID()}`;
  const file = openSync(aside, 'wx', mode);
  try {
    try {
      writeSync(file, `${JSON.stringify(value, null, 2)}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** The file's JSON, or undefined when there is none. @throws DamagedFileError */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof SyntaxError) throw new DamagedFileError(path, { cause: error });
    throw error;
  }
}
