import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { openScratch } from './scratch.ts';

let base: string;
beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'millrace-scratch-'));
});
afterEach(() => rm(base, { recursive: true }));

it('gives each attempt a folder of its own and removes it whole', async () => {
  const scratch = await openScratch(path.join(base, 'made'), 0);
  const [first, second] = await Promise.all([scratch.open(), scratch.open()]);
  expect(first.path).not.toBe(second.path);
  await writeFile(path.join(first.path, 'video-0.mp4'), 'x');
  await first.remove();
  expect(await readdir(path.join(base, 'made'))).toEqual([path.basename(second.path)]);
  await second.remove();
});

it('removes at its start what killed encoders left, and nothing else', async () => {
  const dead = spawn('true', { stdio: 'ignore' });
  await once(dead, 'exit');
  const alive = await (await openScratch(base, 0)).open();
  // In a container the encoder before this one had the same process id.
  const left = [`attempt-${dead.pid ?? 0}-abc`, `attempt-${process.pid}-before`];
  const kept = [path.basename(alive.path), `attempt-${process.ppid}-xyz`, 'lost+found'];
  for (const name of [...left, ...kept.slice(1)]) {
    await mkdir(path.join(base, name));
    await writeFile(path.join(base, name, 'video-0.mp4'), 'x');
  }
  await openScratch(base, 0);
  expect((await readdir(base)).sort()).toEqual(kept.sort());
  await alive.remove();
});

it('knows whether as much is free as is asked for', async () => {
  expect(await (await openScratch(base, 1)).hasRoom()).toBe(true);
  expect(await (await openScratch(base, Number.MAX_SAFE_INTEGER)).hasRoom()).toBe(false);
});
