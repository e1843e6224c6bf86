import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { Client } from 'pg';

const folder = new URL('../migrations/', import.meta.url);
/** Any constant: one migration run at a time, whatever process starts it. */
const advisoryLock = 7_261_003;

interface Migration {
  number: number;
  name: string;
  sql: string;
  hash: string;
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), 'utf8');
      return {
        number: Number.parseInt(name, 10),
        name,
        sql,
        hash: createHash('sha256').update(sql).digest('hex'),
      };
    }),
  );
}

/**
 * Brings the schema up to date: applies the numbered files that are missing, each in its own transaction,
 * under an advisory lock. Safe to run at every start and from several processes at once. Returns the names
 * of the files it applied.
 *
 * @throws Error when an applied file was changed, or the database is newer than this build.
 */
export async function migrate(connectionString: string): Promise<string[]> {
  const migrations = await readMigrations();
  const client = new Client({ connectionString, statement_timeout: 0, lock_timeout: 30_000 });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [advisoryLock]);
    await client.query(
      `create table if not exists migrations (
         number integer primary key, name text not null, hash text not null,
         applied_at timestamptz not null default now())`,
    );
    const { rows } = await client.query<{ number: number; name: string; hash: string }>(
      'select number, name, hash from migrations',
    );
    const applied = new Map(rows.map((row) => [row.number, row]));
    for (const row of rows) {
      const known = migrations.find((migration) => migration.number === row.number);
      if (!known) throw new Error(`the database is newer than this build: it has migration ${row.name}`);
      if (known.hash !== row.hash) throw new Error(`migration ${row.name} was changed after it was applied`);
    }
    const missing = migrations.filter((migration) => !applied.has(migration.number));
    for (const { number, name, sql, hash } of missing) {
      await client.query('begin');
      try {
        await client.query(sql);
        await client.query('insert into migrations (number, name, hash) values ($1, $2, $3)', [
          number,
          name,
          hash,
        ]);
        await client.query('commit');
      } catch (error) {
        await client.query('rollback');
        throw new Error(`migration ${name} failed`, { cause: error });
      }
    }
    return missing.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}
