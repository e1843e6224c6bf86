import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { Client } from 'pg';
import { isRunning, identifyProcess } from '../data-folder/process-identity.ts';
import { createDatabaseFolder, type DatabaseFolder, query } from '../testing/database-folder.ts';
import { findDatabaseUser } from './database-user.ts';
import { startPostgres } from './index.ts';

describe('the embedded PostgreSQL', () => {
  let template: DatabaseFolder;
  let folder: DatabaseFolder;
  beforeAll(async () => {
    template = await createDatabaseFolder();
    await (await template.start()).stop();
  });
  afterAll(() => template.remove());
  beforeEach(async () => {
    folder = await createDatabaseFolder(template);
  });
  afterEach(() => folder.remove());

  const alive = (pid: number): boolean => identifyProcess(pid) !== undefined;

  it('keeps rows over a stop, below a folder that only its owner may enter', async () => {
    expect((await stat(folder.path)).mode & 0o777).toBe(0o700);
    const first = await folder.start();
    await query(first.connectionString, 'create table t as select 7 as n');
    await first.stop();
    expect(alive(first.pid)).toBe(false);
    const second = await folder.start();
    expect(await query(second.connectionString, 'select n from t')).toEqual([{ n: 7 }]);
  });

  it('keeps every committed row when its process is killed, and ends what that left behind', async () => {
    const killed = await folder.hold();
    await query(killed.connectionString, 'create table t as select 8 as n');
    await killed.kill();
    const next = await folder.start();
    expect(alive(killed.pid)).toBe(false);
    expect(await query(next.connectionString, 'select n from t')).toEqual([{ n: 8 }]);
  });

  it('ends a server that did not end with its parent', async () => {
    const killed = await folder.hold();
    const { pid } = killed;
    // A stopped process does not act on the signal that its parent's death sends.
    process.kill(pid, 'SIGSTOP');
    await killed.kill();
    const said: string[] = [];
    const warn = (_fields: object, message: string): void => {
      said.push(message);
      process.kill(pid, 'SIGCONT');
    };
    const next = await folder.start({ ...silentLogger, warn });
    expect(said).toEqual(['ending the database that the last run left behind']);
    expect(alive(pid)).toBe(false);
    expect(await query(next.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('waits for backends that outlive their server', async () => {
    const killed = await folder.hold();
    const { connectionString, pid } = killed;
    const client = new Client({ connectionString });
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const [{ pid: backend } = { pid: NaN }] = rows;
    process.kill(backend, 'SIGSTOP');
    process.kill(pid, 'SIGKILL');
    await killed.kill();
    const next = folder.start();
    await waitFor(async () => (await logOf(folder)).includes('pre-existing shared memory block'));
    process.kill(backend, 'SIGCONT');
    expect(await query((await next).connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    await client.end().catch(() => undefined);
  });

  it("leaves a stranger alone that was given the last server's process id", async () => {
    const [command, args] = (await findDatabaseUser()).command('/bin/sleep', ['600'], {
      ...{ onParentDeath: 'KILL', paths: [], programs: [] },
    });
    const stranger = spawn(command, args, { stdio: 'ignore' });
    const pidFile = join(folder.dataDir, 'postgres/cluster/postmaster.pid');
    await writeFile(pidFile, `${stranger.pid ?? 0}\n${join(folder.dataDir, 'postgres/cluster')}\n`);
    try {
      const server = await folder.start();
      expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
      expect(alive(stranger.pid ?? NaN)).toBe(true);
    } finally {
      stranger.kill();
      await once(stranger, 'exit');
    }
  });

  it('refuses a second service on the same folder, naming the first, and leaves it alone', async () => {
    const first = await folder.start();
    await expect(startPostgres({ dataDir: folder.dataDir, logger: silentLogger })).rejects.toMatchObject({
      code: 'in_use',
      message: expect.stringContaining(`process ${process.pid}`) as unknown,
    });
    expect(await query(first.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('starts over when making the database was interrupted', async () => {
    await rm(folder.dataDir, { recursive: true });
    const half = join(folder.dataDir, 'postgres.new-half');
    await mkdir(half, { recursive: true });
    await writeFile(join(half, 'PG_VERSION'), '18');
    const server = await folder.start();
    expect(await query(server.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(existsSync(half)).toBe(false);
  });

  it.each([
    [
      'another major version made it',
      'postgres/cluster/PG_VERSION',
      '15\n',
      'version_mismatch',
      'PostgreSQL 15',
    ],
    ['its passwords are gone', 'postgres/credentials.json', '', 'damaged', 'credentials.json'],
  ])('says what to do when %s', async (_why, file, content, code, hint) => {
    await writeFile(join(folder.dataDir, file), content);
    await expect(folder.start()).rejects.toMatchObject({
      code,
      message: expect.stringContaining(hint) as unknown,
    });
    // The folder is free again after the failure.
    await expect(folder.start()).rejects.toMatchObject({ code });
  });

  it("passes on the server's own words when it does not start", async () => {
    await rm(join(folder.dataDir, 'postgres/cluster/global/pg_control'));
    await expect(folder.start()).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('could not find the database system') as unknown,
    });
  });

  it('keeps its passwords for the owner of the folder alone, and its services from its files', async () => {
    const server = await folder.start();
    const path = join(folder.dataDir, 'postgres/credentials.json');
    expect((await stat(path)).mode & 0o077).toBe(0);
    await expect(query(server.connectionString, "select pg_read_file('/etc/hostname')")).rejects.toThrow(
      /denied/,
    );
    const wrong = server.connectionString.replace(/:[^:@]+@/, ':wrong@');
    await expect(query(wrong, 'select 1')).rejects.toThrow(/password authentication failed/);
  });

  it('writes every commit to the disk before it is answered', async () => {
    const { connectionString } = await folder.start();
    const settings = await query(
      connectionString,
      "select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')",
    );
    expect(settings).toHaveLength(3);
    for (const setting of settings) expect(setting).toMatchObject({ setting: 'on' });
  });

  it('tells when the server ends by itself', async () => {
    const server = await folder.start();
    const identity = identifyProcess(server.pid);
    process.kill(server.pid, 'SIGKILL');
    await server.exited;
    expect(identity && isRunning(identity)).toBe(false);
    await server.stop();
    expect(await query((await folder.start()).connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('keeps statements and values out of its log', async () => {
    const { connectionString } = await folder.start();
    await query(connectionString, 'create table t (secret text primary key)');
    await query(connectionString, "insert into t values ('canary-value')");
    await expect(query(connectionString, "insert into t values ('canary-value')")).rejects.toThrow(
      /duplicate/,
    );
    const log = await logOf(folder);
    expect(log).toContain('duplicate key value');
    expect(log).not.toContain('canary');
  });
});

const logOf = (folder: DatabaseFolder): Promise<string> =>
  readFile(join(folder.dataDir, 'logs/postgres.log'), 'utf8');
