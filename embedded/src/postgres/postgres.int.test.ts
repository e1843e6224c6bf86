import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { waitFor } from '@millrace/testing';
import { Client } from 'pg';
import { type EmbeddedPostgres, startPostgres } from './index.ts';

const holder = new URL('../testing/hold-postgres.ts', import.meta.url).pathname;

describe('the embedded PostgreSQL', () => {
  let folder: string;
  let dataDir: string;
  let running: EmbeddedPostgres[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-postgres-'));
    dataDir = join(folder, 'data');
    running = [];
  });
  afterEach(async () => {
    await Promise.all(running.map((postgres) => postgres.stop()));
    await rm(folder, { recursive: true, force: true });
  });

  async function start(): Promise<EmbeddedPostgres> {
    const postgres = await startPostgres({ dataDir, logger: silentLogger });
    running.push(postgres);
    return postgres;
  }
  async function query(connectionString: string, text: string): Promise<unknown[]> {
    const client = new Client({ connectionString });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  }
  const alive = (pid: number): boolean => existsSync(`/proc/${pid}`);

  it('works below a folder that only its owner may enter, and keeps rows over a stop', async () => {
    await chmod(folder, 0o700);
    const first = await start();
    await query(first.connectionString, 'create table t as select 7 as n');
    await first.stop();
    expect(alive(first.pid)).toBe(false);
    const second = await start();
    expect(await query(second.connectionString, 'select n from t')).toEqual([{ n: 7 }]);
  });

  it('keeps every committed row when its process is killed, and ends what that left behind', async () => {
    const child = spawn(process.execPath, [holder, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const { connectionString, pid } = JSON.parse(line.toString()) as {
      connectionString: string;
      pid: number;
    };
    await query(connectionString, 'create table t as select 8 as n');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const next = await start();
    await waitFor(() => !alive(pid), { what: 'the old server to end' });
    expect(await query(next.connectionString, 'select n from t')).toEqual([{ n: 8 }]);
  });

  it('refuses a second service on the same folder, and leaves the first alone', async () => {
    const first = await start();
    await expect(startPostgres({ dataDir, logger: silentLogger })).rejects.toMatchObject({ code: 'in_use' });
    expect(await query(first.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('starts over when making the database was interrupted', async () => {
    await mkdir(join(dataDir, 'postgres.new-half'), { recursive: true });
    await writeFile(join(dataDir, 'postgres.new-half', 'PG_VERSION'), '18');
    const postgres = await start();
    expect(await query(postgres.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(existsSync(join(dataDir, 'postgres.new-half'))).toBe(false);
  });

  it('says what to do when another major version made the database', async () => {
    await (await start()).stop();
    await writeFile(join(dataDir, 'postgres/cluster/PG_VERSION'), '15\n');
    await expect(start()).rejects.toMatchObject({ code: 'version_mismatch' });
  });

  it('keeps its passwords for the owner of the folder alone', async () => {
    await start();
    const path = join(dataDir, 'postgres/credentials.json');
    expect((await stat(path)).mode & 0o077).toBe(0);
    expect(JSON.parse(await readFile(path, 'utf8'))).toHaveProperty('service');
  });
});
