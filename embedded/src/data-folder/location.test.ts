import { existsSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { dataFolder } from './location.ts';

const before = process.cwd();
afterEach(() => {
  process.chdir(before);
});

it('is .millrace in the clone by default, wherever one stands', () => {
  process.chdir(tmpdir());
  const folder = dataFolder();
  expect(path.basename(folder)).toBe('.millrace');
  expect(existsSync(path.join(folder, '..', 'package-lock.json'))).toBe(true);
});

it('is what the caller gives, from where he stands', () => {
  process.chdir(tmpdir());
  expect(dataFolder('data')).toBe(path.join(realpathSync(tmpdir()), 'data'));
  expect(dataFolder('/var/data')).toBe('/var/data');
});
