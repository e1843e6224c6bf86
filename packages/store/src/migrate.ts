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

/** What `migrate` found and did; both are names of files, in their order. */
export interface Migrated {
  applied: string[];
  /** What a newer build has applied beyond all that this one has: so it is after a roll-back. */
  newer: string[];
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
 * under an advisory lock. Safe to run at every start and from several processes at once. A schema that is newer
 * than this build stays as it is: after a roll-back the release before runs on it (ADR 19).
 *
 * @throws Error when the database has another history than this build: an applied file was changed, or one that this
 *   build does not know lies among those that it does
 */
export async function migrate(connectionString: string, options: MigrateOptions = {}): Promise<Migrated> {
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
    const { missing, newer } = await compare(client, migrations);
    for (const migration of missing) await applyPatiently(client, migration, options);
    return { applied: missing.map(({ name }) => name), newer };
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

/** Not there yet, starting (57P03), or full (53300): neither a wrong address, password nor certificate. */
const mayBeReadySoon = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.code === '57P03' || error.code === '53300'
    : !/^SELF_SIGNED|^DEPTH_ZERO|^UNABLE_TO|^CERT_|^ERR_TLS/.test(
        (error as NodeJS.ErrnoException).code ?? '',
      );

/**
 * What this build has and the database has not, and the other way round.
 * @throws Error when neither continues the other
 */
async function compare(
  client: Client,
  migrations: readonly Migration[],
): Promise<{ missing: Migration[]; newer: string[] }> {
  const { rows } = await client.query<{ number: number; name: string; hash: string }>(
    'select number, name, hash from migrations order by number',
  );
  const last = migrations.at(-1)?.number ?? 0;
  for (const { number, name, hash } of rows) {
    const known = migrations.find((migration) => migration.number === number);
    if (known === undefined && number < last)
      throw new Error(`the database has migration ${name}, which this build never had`);
    if (known !== undefined && known.hash !== hash)
      throw new Error(`migration ${name} was changed after it was applied`);
  }
  const applied = new Set(rows.map(({ number }) => number));
  const missing = migrations.filter(({ number }) => !applied.has(number));
  const newer = rows.filter(({ number }) => number > last).map(({ name }) => name);
  if (missing[0] !== undefined && newer[0] !== undefined)
    throw new Error(`the database has migration ${newer[0]} of a newer build, but not ${missing[0].name}`);
  return { missing, newer };
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
