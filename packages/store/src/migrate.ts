import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';

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

export interface MigrateOptions {
  /** How long a database that cannot be reached yet is waited for, in milliseconds; not at all unless told. */
  waitMs?: number;
  /**
   * How long a migration waits for a lock, in milliseconds; 4 s unless told. Whoever wants the same table queues up
   * behind it meanwhile, so it gives way after that and tries again.
   */
  lockTimeoutMs?: number;
  /** Told why it waits. */
  onWait?: (reason: Error) => void;
}

const pollMs = 1_000;
/** How often a migration tries to get its locks. */
const lockTries = 20;
/** Another process may be migrating, which can take this long. */
const othersMs = 900_000;

/**
 * Brings the schema up to date: applies the numbered files that are missing, each in its own transaction,
 * under an advisory lock. Safe to run at every start and from several processes at once. Returns the names
 * of the files it applied.
 *
 * @throws Error when an applied file was changed, or the database is newer than this build.
 */
export async function migrate(connectionString: string, options: MigrateOptions = {}): Promise<string[]> {
  const migrations = await readMigrations();
  const client = await connect(connectionString, options);
  try {
    await client.query('select pg_advisory_lock($1)', [advisoryLock]);
    await client.query(
      `create table if not exists migrations (
         number integer primary key, name text not null, hash text not null,
         applied_at timestamptz not null default now())`,
    );
    await client.query(`set lock_timeout = ${options.lockTimeoutMs ?? 4_000}`);
    const missing = await missingOf(client, migrations);
    for (const migration of missing) await applyPatiently(client, migration, options);
    return missing.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

async function connect(connectionString: string, options: MigrateOptions): Promise<Client> {
  const deadline = Date.now() + (options.waitMs ?? 0);
  for (;;) {
    const client = new Client({
      ...{ connectionString, statement_timeout: 0, lock_timeout: othersMs },
      connectionTimeoutMillis: 10_000,
    });
    // A connection that is lost later fails the statement that is under way; unheard, it would end the process.
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => undefined);
      if (!mayBeReadySoon(error) || Date.now() >= deadline) throw error;
      options.onWait?.(error as Error);
      await pause(pollMs);
    }
  }
}

/** Not there yet, starting (57P03), or full (53300): neither a wrong address nor a wrong password. */
const mayBeReadySoon = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.code === '57P03' || error.code === '53300'
    : !/^SELF_SIGNED|^CERT_|^ERR_TLS/.test((error as NodeJS.ErrnoException).code ?? '');

/** @throws Error when what was applied is not what this build has */
async function missingOf(client: Client, migrations: readonly Migration[]): Promise<Migration[]> {
  const { rows } = await client.query<{ number: number; name: string; hash: string }>(
    'select number, name, hash from migrations',
  );
  for (const row of rows) {
    const known = migrations.find((migration) => migration.number === row.number);
    if (!known) throw new Error(`the database is newer than this build: it has migration ${row.name}`);
    if (known.hash !== row.hash) throw new Error(`migration ${row.name} was changed after it was applied`);
  }
  const applied = new Set(rows.map((row) => row.number));
  return migrations.filter((migration) => !applied.has(migration.number));
}

async function applyPatiently(client: Client, migration: Migration, options: MigrateOptions): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await apply(client, migration);
      return;
    } catch (error) {
      if (!isInTheWay(error) || tries === lockTries)
        throw new Error(`migration ${migration.name} failed`, { cause: error });
      options.onWait?.(error);
      // Those who queued up behind us come first.
      await pause(pollMs * (1 + Math.random()));
    }
  }
}

/** A lock was not to be had in time (55P03), or others waited for ours while we waited for theirs (40P01). */
const isInTheWay = (error: unknown): error is DatabaseError =>
  error instanceof DatabaseError && (error.code === '55P03' || error.code === '40P01');

async function apply(client: Client, { number, name, sql, hash }: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(sql);
    await client.query('insert into migrations (number, name, hash) values ($1, $2, $3)', [
      ...[number, name, hash],
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}
