import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { choosePorts } from './ports.ts';

const host = '127.0.0.1';

describe('ports of a data folder', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-ports-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const choose = () => choosePorts(folder, host, { api: 0, cdn: 0, upload: 0 }, silentLogger);

  it('are different ones, that nobody gets who asks for any port', async () => {
    const ports = Object.values(await choose());
    expect(new Set(ports).size).toBe(3);
    for (const port of ports) expect(port).toBeLessThan(32_768);
  });

  it('stay the same over restarts, but for one that somebody else has meanwhile', async () => {
    const before = await choose();
    expect(await choose()).toEqual(before);
    const other = createServer().listen(before.cdn, host);
    await once(other, 'listening');
    const after = await choose();
    other.close();
    await once(other, 'close');
    expect({ ...after, cdn: 0 }).toEqual({ ...before, cdn: 0 });
    expect(after.cdn).not.toBe(before.cdn);
  });

  it('are the configured ones where there are any', async () => {
    const { api } = await choosePorts(folder, host, { api: 12_345 }, silentLogger);
    expect(api).toBe(12_345);
  });
});
