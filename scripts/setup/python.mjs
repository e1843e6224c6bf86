import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { runQuietly } from './exec.mjs';
import { withLock } from './lock.mjs';
import { say, SetupError } from './say.mjs';

/** Downloads and builds; never required, safe to delete. */
const cacheFolder = () => process.env.MILLRACE_CACHE || join(homedir(), '.cache/millrace');

/**
 * Makes sure that Schemathesis is there, the versions that `dev/schemathesis/requirements.txt` pins, in an environment
 * of its own below the cache. Tests find it by `MILLRACE_SCHEMATHESIS`.
 * @throws SetupError when it cannot be installed
 */
export async function ensureSchemathesis(root) {
  const requirements = join(root, 'dev/schemathesis/requirements.txt');
  const key = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), `schemathesis-${key}`);
  const command = join(folder, 'bin/schemathesis');
  // An environment cannot be moved into place: the marker says that it is whole.
  const marker = join(folder, '.installed');
  if (!existsSync(marker)) {
    mkdirSync(cacheFolder(), { recursive: true });
    await withLock(`${folder}.lock`, async (onStart) => {
      if (existsSync(marker)) return;
      say('installing Schemathesis, which tests the API from outside (once)');
      rmSync(folder, { recursive: true, force: true });
      const steps = [
        ['python3', ['-m', 'venv', folder]],
        [join(folder, 'bin/pip'), ['install', '--quiet', '--no-input', '-r', requirements]],
      ];
      for (const [step, args] of steps) {
        if (await runQuietly(step, args, { onStart })) continue;
        throw new SetupError('Schemathesis could not be installed; run the command again to retry');
      }
      writeFileSync(marker, '');
    });
  }
  process.env.MILLRACE_SCHEMATHESIS = command;
}
