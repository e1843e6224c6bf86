import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createDatabaseFolder, type DatabaseFolder, query } from '../testing/database-folder.ts';
import { findBinaries } from './binaries.ts';

/** As another user than root there is one way only to run PostgreSQL, which the other tests go already. */
const asRoot = process.getuid?.() === 0 && existsSync('/usr/bin/setpriv') ? describe : describe.each([]);

asRoot('the user of the embedded PostgreSQL, started by root', () => {
  let template: DatabaseFolder;
  let folder: DatabaseFolder;
  let installation: string;
  beforeAll(async () => {
    template = await createDatabaseFolder();
    await (await template.start()).stop();
    // Below a folder of mode 0700, as in a clone there.
    installation = join(template.path, 'native');
    cpSync(findBinaries().folder, installation, { recursive: true, verbatimSymlinks: true });
  });
  afterAll(() => template.remove());
  beforeEach(async () => {
    folder = await createDatabaseFolder(template);
  });
  afterEach(() => folder.remove());

  /** A command line that runs another without the named capabilities, as containers do. */
  const without = (...capabilities: string[]): string[] => [
    ...['setpriv', '--bounding-set', capabilities.map((name) => `-${name}`).join(','), '--'],
  ];
  const status = (pid: number, field: string): string =>
    new RegExp(`^${field}:\\s*(\\S+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';

  it('is postgres, which may search folders and nothing else that others may not', async () => {
    const server = await folder.hold([], installation);
    expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(status(server.pid, 'Uid')).toBe(
      execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' }).trim(),
    );
    expect(BigInt(`0x${status(server.pid, 'CapEff')}`)).toBe(1n << 2n);
  });

  it('has no capability where every folder on the way is open to it', async () => {
    chmodSync(folder.path, 0o711);
    chmodSync(template.path, 0o711);
    try {
      const server = await folder.hold([], installation);
      expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
      expect(BigInt(`0x${status(server.pid, 'CapEff')}`)).toBe(0n);
    } finally {
      chmodSync(template.path, 0o700);
    }
  });

  it('makes a new database there too', async () => {
    const empty = await createDatabaseFolder();
    try {
      const server = await empty.hold([], installation);
      expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      await empty.remove();
    }
  });

  it('works in a container that withholds the right to search', async () => {
    const server = await folder.hold(without('dac_read_search'), installation);
    expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('works from a clone that was made with umask 077', async () => {
    chmodSync(join(installation, 'bin/postgres'), 0o700);
    chmodSync(join(installation, 'bin/initdb'), 0o700);
    try {
      const server = await folder.hold([], installation);
      expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    } finally {
      chmodSync(join(installation, 'bin/postgres'), 0o755);
      chmodSync(join(installation, 'bin/initdb'), 0o755);
    }
  });

  it('names the closed folder where root cannot pass any right on', async () => {
    const empty = await createDatabaseFolder();
    try {
      const refused = empty.hold(without('dac_read_search', 'dac_override'));
      await expect(refused).rejects.toMatchObject({
        code: 'closed_folder',
        message: expect.stringContaining(`chmod o+x ${empty.path}`) as unknown,
      });
    } finally {
      await empty.remove();
    }
    await expect(folder.hold(without('dac_read_search', 'dac_override'))).rejects.toMatchObject({
      code: 'closed_folder',
    });
  });

  it('is whoever starts it, when that is not root', async () => {
    const nobody = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }));
    const home = await createDatabaseFolder();
    try {
      chownSync(home.path, nobody, nobody);
      mkdirSync(home.dataDir);
      chownSync(home.dataDir, nobody, nobody);
      // Only to read this very checkout, wherever it lies.
      const reading = ['--inh-caps', '+dac_read_search', '--ambient-caps', '+dac_read_search'];
      const user = ['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups'];
      const server = await home.hold([
        'setpriv',
        ...user,
        ...reading,
        '--securebits',
        '+no_setuid_fixup',
        '--',
      ]);
      expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
      expect(status(server.pid, 'Uid')).toBe(String(nobody));
    } finally {
      await home.remove();
    }
  });
});
