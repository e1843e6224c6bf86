import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { withLock } from '../scripts/setup/lock.mjs';

/** A folder of the cache: its name ends with the hash of all that decides what is in it. */
export function cachedFolder(name: string, ...madeOf: readonly (string | Buffer | object)[]): string {
  const cache = process.env['MILLRACE_CACHE'] || join(homedir(), '.cache', 'millrace');
  const hash = createHash('sha256');
  for (const each of madeOf)
    hash.update(typeof each === 'string' || Buffer.isBuffer(each) ? each : JSON.stringify(each));
  return join(cache, `${name}-${hash.digest('hex').slice(0, 16)}`);
}

export interface Making {
  /** Works in this folder, which is empty unless it `resumes`; names the processes that it starts. */
  make: (build: string, onStart: (pid: number) => void) => Promise<void>;
  /** Of that folder, what is kept; the rest is removed. */
  result: string;
  /** An interrupted one is gone on with; else it begins anew. */
  resumes?: boolean;
}

/** Makes a folder of the cache unless it is there. Whole or not at all; processes that want it meanwhile wait. */
export async function madeOnce(folder: string, { make, result, resumes = false }: Making): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  await withLock(`${folder}.lock`, async (onStart) => {
    if (existsSync(folder)) return;
    const build = `${folder}.build`;
    if (!resumes) rmSync(build, { recursive: true, force: true });
    mkdirSync(build, { recursive: true });
    await make(build, onStart);
    renameSync(join(build, result), folder);
    rmSync(build, { recursive: true });
  });
}

/** Whether a command is there. */
export const runs = (command: string, argument: string): boolean =>
  spawnSync(command, [argument], { stdio: 'ignore' }).status === 0;
