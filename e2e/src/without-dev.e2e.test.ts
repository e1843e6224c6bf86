import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';

const main = fileURLToPath(new URL('../../embedded/src/main.ts', import.meta.url));

let folder: string;
let service: ChildProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-plain-'));
});
afterEach(async () => {
  if (service?.exitCode === null) {
    const ended = once(service, 'exit');
    service.kill('SIGTERM');
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const command = [main, '--data', join(folder, 'data'), '--ready-file', join(folder, 'ready.json'), ...args];
  service = spawn(process.execPath, command, { stdio: 'ignore', env: { ...process.env, ...env } });
  return service;
}

it('without --dev there is nothing for development [RUN-005]', async () => {
  start([]);
  const ready = join(folder, 'ready.json');
  await waitFor(() => existsSync(ready), { timeoutMs: 90_000, what: 'the ready file' });
  const { api, dns, adminToken } = JSON.parse(await readFile(ready, 'utf8')) as Record<string, string | null>;
  expect([dns, adminToken]).toEqual([null, null]);
  const codeOf = async (path: string): Promise<string> => {
    const response = await fetch(`${api ?? ''}${path}`, { redirect: 'manual' });
    return `${response.status} ${((await response.json()) as { code: string }).code}`;
  };
  for (const path of ['/dev', '/dev/', '/dev/console.js']) expect(await codeOf(path)).toBe('404 not_found');
  for (const name of ['google', 'microsoft'])
    expect(await codeOf(`/auth/${name}/start`)).toBe('503 not_configured');
}, 120_000);

it('--dev is refused in production [RUN-006]', async () => {
  const [code] = (await once(start(['--dev'], { NODE_ENV: 'production' }), 'exit')) as [number];
  expect([code, existsSync(join(folder, 'data'))]).toEqual([2, false]);
}, 60_000);
