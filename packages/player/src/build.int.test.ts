import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadPlayer, type PlayerFiles } from './build.ts';

const names = (files: PlayerFiles): string[] => [files.script.name, files.style.name, files.logo.name];

describe('loadPlayer', () => {
  let cache: string;
  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'millrace-player-'));
  });
  afterEach(() => rm(cache, { recursive: true, force: true }));

  it('builds once, and again what was damaged, always the same', async () => {
    const built = await loadPlayer(cache);
    expect(names(built)).toEqual([
      expect.stringMatching(/^player-[0-9a-f]{16}\.js$/),
      expect.stringMatching(/^player-[0-9a-f]{16}\.css$/),
      expect.stringMatching(/^logo-[0-9a-f]{16}\.svg$/),
    ]);
    expect(built.script.identity.toString()).not.toContain('sourceMappingURL');
    const [folder = ''] = await readdir(cache);
    expect((await readdir(join(cache, folder))).sort()).toEqual(
      names(built)
        .map((name) => `${name}.br`)
        .sort(),
    );

    expect(await loadPlayer(cache)).toEqual(built);
    const script = join(cache, folder, `${built.script.name}.br`);
    await writeFile(script, built.style.brotli);
    expect(names(await loadPlayer(cache))).toEqual(names(built));
    expect(await readdir(cache)).toEqual([folder]);
  }, 120_000);

  it('does without a cache that cannot be written', async () => {
    const file = join(cache, 'file');
    await writeFile(file, '');
    expect((await loadPlayer(file)).style.identity.length).toBeGreaterThan(0);
  }, 60_000);
});
