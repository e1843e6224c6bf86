import { readdir, readFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { probePort } from '@millrace/platform';
import { createTestDatabase, type TestDatabase, waitFor } from '@millrace/testing';
import { Client } from 'pg';
import { migrate } from './migrate.ts';

const name = '000018_plan_estimate.sql';

describe('migrate', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: database.connectionString });
    await client.connect();
    return work(client).finally(() => client.end());
  }
  /** As if that one had never been applied. */
  const forget = (): Promise<unknown> =>
    withClient((client) =>
      client.query('drop statistics accounts_limiting_plan; delete from migrations where number = 18'),
    );

  it('gives way to who holds a lock that it needs, and tries again', async () => {
    await forget();
    await withClient(async (holder) => {
      await holder.query('begin; lock table accounts in access exclusive mode');
      const reasons: Error[] = [];
      const onWait = (reason: Error): void => {
        reasons.push(reason);
        void holder.query('commit');
      };
      const applied = await migrate(database.connectionString, { lockTimeoutMs: 50, onWait });
      expect(applied).toEqual({ applied: [name], newer: [] });
      expect(reasons.map((reason) => (reason as { code?: string }).code)).toEqual(['55P03']);
    });
    expect(await migrate(database.connectionString)).toEqual({ applied: [], newer: [] });
  });

  it('is tried again when it was chosen to end a deadlock', async () => {
    await forget();
    await withClient((first) =>
      withClient(async (other) => {
        await first.query('begin; lock table accounts in access exclusive mode');
        // What a migration locks last. Of the two that will wait for one another it is not this one that looks.
        await other.query(`set deadlock_timeout = '1 h'; begin; lock table migrations in share mode`);
        const reasons: Error[] = [];
        const onWait = (reason: Error): void => void reasons.push(reason);
        const running = migrate(database.connectionString, { lockTimeoutMs: 60_000, onWait });
        const untilWaiting = (count: number): Promise<unknown> =>
          waitFor(async () => {
            const { rows } = await first.query(
              `select from pg_locks where relation = 'accounts'::regclass and not granted
                 and database = (select oid from pg_database where datname = current_database())`,
            );
            return rows.length === count;
          });
        await untilWaiting(1);
        // Behind the migration, which has the table once it is free.
        const behind = other.query('lock table accounts in access exclusive mode');
        await untilWaiting(2);
        await first.query('commit');
        await behind;
        await other.query('commit');
        expect((await running).applied).toEqual([name]);
        expect(reasons.map((reason) => (reason as { code?: string }).code)).toEqual(['40P01']);
      }),
    );
  });

  it('applies each migration once, however many processes begin at once', async () => {
    await forget();
    const applied = await Promise.all([1, 2, 3].map(() => migrate(database.connectionString)));
    expect(applied.flatMap((each) => each.applied)).toEqual([name]);
  });

  it('waits for a database that is not there yet, for as long as it is told', async () => {
    const url = new URL(database.connectionString);
    const there = { host: url.hostname, port: Number(url.port) };
    url.port = String(await probePort('127.0.0.1'));
    url.hostname = '127.0.0.1';
    await expect(migrate(url.href)).rejects.toThrow('ECONNREFUSED');
    let server: Server | undefined;
    const onWait = (): void => {
      server ??= createServer((socket) => {
        const other = connect(there);
        socket.on('error', () => undefined);
        socket.pipe(other).pipe(socket);
      }).listen(Number(url.port), url.hostname);
    };
    expect(await migrate(url.href, { waitMs: 60_000, onWait })).toEqual({ applied: [], newer: [] });
    expect(server).toBeDefined();
    server?.close();
  });

  it('does not wait for a database that refuses it', async () => {
    const url = new URL(database.connectionString);
    url.pathname = '/there_is_none';
    const onWait = (): void => {
      throw new Error('waits');
    };
    await expect(migrate(url.href, { waitMs: 60_000, onWait })).rejects.toThrow('does not exist');
  });

  describe('on a schema of another build', () => {
    const numbers = (): Promise<number[]> =>
      withClient(async (client) => {
        const { rows } = await client.query<{ number: number }>(
          'select number from migrations order by number',
        );
        return rows.map(({ number }) => number);
      });
    /** What another build applied, for as long as `work` takes. */
    const withForeign = (names: readonly string[], work: () => Promise<void>): Promise<void> =>
      withClient(async (client) => {
        const all = names.map((file) => Number.parseInt(file, 10));
        const add = `insert into migrations (number, name, hash) select *, 'of another build' from unnest($1::int[], $2::text[])`;
        await client.query(add, [all, names]);
        await work().finally(() => client.query('delete from migrations where number = any ($1)', [all]));
      });

    it('leaves one alone that a newer build has brought further, and says so', async () => {
      const later = ['999998_later.sql', '999999_last.sql'];
      await withForeign(later, async () => {
        const before = await numbers();
        expect(await migrate(database.connectionString)).toEqual({ applied: [], newer: later });
        expect(await numbers()).toEqual(before);
      });
    });

    it('refuses one that has what this build never had', async () => {
      await withForeign(['000000_unknown.sql'], () =>
        expect(migrate(database.connectionString)).rejects.toThrow(
          'has migration 000000_unknown.sql, which this build never had',
        ),
      );
    });

    it('refuses one that a newer build has brought further by another way, and changes nothing', async () => {
      await forget();
      await withForeign(['999999_later.sql'], async () => {
        const before = await numbers();
        await expect(migrate(database.connectionString)).rejects.toThrow(
          `has migration 999999_later.sql of a newer build, but not ${name}`,
        );
        expect(await numbers()).toEqual(before);
      });
      await migrate(database.connectionString);
    });

    it('refuses one in which a file was changed after it was applied', async () => {
      const mark = (suffix: string): Promise<unknown> =>
        withClient((client) =>
          client.query(`update migrations set hash = left(hash, 64) || $1 where number = 18`, [suffix]),
        );
      await mark('-other');
      await withForeign(['999999_later.sql'], () =>
        expect(migrate(database.connectionString)).rejects.toThrow(
          `${name} was changed after it was applied`,
        ),
      );
      await mark('');
      expect(await migrate(database.connectionString)).toEqual({ applied: [], newer: [] });
    });
  });
});

describe('a migration since the release before', () => {
  const folder = new URL('../migrations/', import.meta.url);
  /** The last of the release before; what it has cannot be changed. */
  const released = 20;

  it('locks one table at most that others use, and reads none while they cannot', async () => {
    const database = await createTestDatabase();
    const client = new Client({ connectionString: database.connectionString });
    await client.connect();
    try {
      await client.query('drop schema public cascade; create schema public');
      for (const file of (await readdir(folder)).sort()) {
        const sql = await readFile(new URL(file, folder), 'utf8');
        const tables = await client.query<{ oid: number }>(
          `select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
        );
        await client.query('begin');
        await client.query(sql);
        const { rows: locked } = await client.query<{ name: string }>(
          `select relation::regclass::text as name from pg_locks
           where pid = pg_backend_pid() and mode = 'AccessExclusiveLock' and relation = any($1)`,
          [tables.rows.map((table) => table.oid)],
        );
        await client.query('commit');
        if (Number.parseInt(file, 10) <= released || locked.length === 0) continue;
        expect([file, locked.slice(1)]).toEqual([file, []]);
        expect([file, sql]).toEqual([
          file,
          expect.not.stringMatching(/validate constraint|^(create (unique )?index|update|delete)/m),
        ]);
      }
    } finally {
      await client.end();
      await database.drop();
    }
  });
});
