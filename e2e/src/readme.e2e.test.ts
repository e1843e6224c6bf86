import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The commands of the README from `millrace()` to the end of their block, on a folder of their own. */
async function walkOf(folder: string): Promise<string> {
  const readme = await readFile(join(root, 'README.md'), 'utf8');
  const walk = /^millrace\(\) \{[^]*?(?=^```$)/m.exec(readme)?.[0] ?? '';
  expect(walk).toContain('npm run -s millrace --');
  return walk.replaceAll('/tmp/', `${folder}/`).replace('millrace --', `millrace -- --data ${folder}/data`);
}

it('the README’s walk through the API runs as it stands', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-readme-'));
  const ready = join(folder, 'millrace.json');
  const args = ['--data', join(folder, 'data'), '--ready-file', ready, '--dev'];
  const service = spawn(process.execPath, [join(root, 'embedded/src/main.ts'), ...args], {
    stdio: 'ignore',
    env: { ...process.env, ENCODER_PRESET: 'ultrafast' },
  });
  const ended = once(service, 'exit');
  try {
    await waitFor(() => existsSync(ready), { timeoutMs: 60_000, what: 'the ready file' });
    const { stdout } = await promisify(execFile)('bash', ['-eu', '-c', await walkOf(folder)], {
      cwd: root,
      timeout: 120_000,
    });
    expect(stdout).toContain('#EXTM3U');
    expect(stdout).toContain('1080p/index.m3u8?token=');
  } finally {
    service.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true });
  }
}, 240_000);
