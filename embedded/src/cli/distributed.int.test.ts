import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase } from '@millrace/testing';
import { query } from '../testing/database-folder.ts';

const entry = new URL('./main.ts', import.meta.url).pathname;
const migrations = new URL('../../../packages/store/migrations/', import.meta.url);
/** Each command is a process of its own. */
const slowly = 120_000;

describe('the command line on services whose record is elsewhere', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  beforeAll(async () => {
    database = await createTestDatabase();
    await query(database.connectionString, 'drop schema public cascade');
    await query(database.connectionString, 'create schema public');
  });
  afterAll(() => database.drop());

  const millrace = (...args: string[]): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const env = { ...process.env, DATABASE_URL: database.connectionString };
      execFile(process.execPath, [entry, ...args, '--json'], { env }, (error, out) => {
        if (error === null) resolve(JSON.parse(out) as Record<string, unknown>);
        else reject(new Error(args.join(' '), { cause: error }));
      });
    });
  const tables = async (): Promise<number> =>
    (await query(database.connectionString, `select from pg_tables where schemaname = 'public'`)).length;

  it(
    'brings an empty database to the current schema, once [CLI-014]',
    async () => {
      const all = (await readdir(migrations)).filter((name) => name.endsWith('.sql')).sort();
      expect(await tables()).toBe(0);
      expect(await millrace('migrate')).toEqual({ migrated: true, applied: all, newer: [] });
      expect(await query(database.connectionString, 'select name from migrations order by number')).toEqual(
        all.map((name) => ({ name })),
      );
      expect(await millrace('migrate', '--wait', '30')).toEqual({ migrated: true, applied: [], newer: [] });
    },
    slowly,
  );

  it(
    'is content with the schema of a newer release, so that an older chart can be upgraded to',
    async () => {
      await millrace('migrate');
      const later = { number: 999_999, name: '999999_later.sql' };
      await query(
        database.connectionString,
        `insert into migrations (number, name, hash) values (${later.number}, '${later.name}', 'of another build')`,
      );
      const answer = { migrated: true, applied: [], newer: [later.name] };
      expect(await millrace('migrate', '--wait', '300')).toEqual(answer);
      await query(database.connectionString, `delete from migrations where number = ${later.number}`);
    },
    slowly,
  );

  it(
    'works on the record that DATABASE_URL names [CLI-018]',
    async () => {
      const owner = ['--name', 'Acme', '--email', 'far@example.com', '--plan', 'pro'];
      const { account } = (await millrace('account', 'create', ...owner)) as { account: { id: string } };
      expect(await query(database.connectionString, 'select id, plan_id from accounts')).toEqual([
        { id: account.id, plan_id: 'pro' },
      ]);
      expect(await millrace('usage', 'show', account.id)).toMatchObject({ plan: { id: 'pro' } });
    },
    slowly,
  );
});
