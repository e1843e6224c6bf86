import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { captureLogger } from '@millrace/testing';
import { readJsonFile, writeJsonFile } from './json-file.ts';
import { choosePorts } from './ports.ts';
import { readRunFile, writeRunFile } from './run-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});
const damages = ['', '{', '[]', '{"api":"no"}', '{"api":70000}', 'null'];

describe('a damaged file of the data folder', () => {
  it('is named', () => {
    const path = join(folder, 'x.json');
    writeFileSync(path, '{');
    expect(() => readJsonFile(path)).toThrow(`${path} is damaged`);
    expect(readJsonFile(join(folder, 'none.json'))).toBeUndefined();
  });

  it.each(damages)('costs only the ports of the last run: %j', async (text) => {
    writeFileSync(join(folder, 'ports.json'), text);
    const { logger } = captureLogger();
    const first = await choosePorts(folder, '127.0.0.1', { api: 0 }, logger);
    expect(first).toEqual({ api: expect.any(Number) });
    expect(await choosePorts(folder, '127.0.0.1', { api: 0 }, logger)).toEqual(first);
  });

  it.each(damages)('says of no service that it runs: %j', (text) => {
    writeRunFile(folder, { connectionString: 'postgres://x' });
    writeFileSync(join(folder, 'run.json'), text);
    expect(readRunFile(folder)).toBeUndefined();
  });
});

it('leaves nothing beside a file that cannot be put in its place', () => {
  mkdirSync(join(folder, 'taken'));
  expect(() => writeJsonFile(join(folder, 'taken'), {})).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(folder)).toEqual(['taken']);
});
