import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DamagedFileError } from './json-file.ts';
import { loadSecrets } from './secrets.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-secrets-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});
const file = (): string => join(folder, 'secrets.json');

describe('loadSecrets', () => {
  it('makes them once, each its own', () => {
    const secrets = loadSecrets(folder);
    expect(loadSecrets(folder)).toEqual(secrets);
    expect(new Set(Object.values(secrets)).size).toBe(Object.keys(secrets).length);
  });

  it('keeps those of an older version, and makes what came later', () => {
    const { cursorKeys, ...rest } = loadSecrets(folder);
    writeFileSync(file(), JSON.stringify(rest));
    const { cursorKeys: made, ...kept } = loadSecrets(folder);
    expect(kept).toEqual(rest);
    expect(made).not.toBe(cursorKeys);
    expect(loadSecrets(folder).cursorKeys).toBe(made);
  });

  it.each(['{', '[]', '{"cursorKeys":5}', '{"cursorKeys":""}'])('refuses the damaged file %j', (text) => {
    writeFileSync(file(), text);
    expect(() => loadSecrets(folder)).toThrow(DamagedFileError);
    expect(readFileSync(file(), 'utf8')).toBe(text);
  });
});
