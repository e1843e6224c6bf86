import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMetrics } from '@millrace/platform';
import { captureLogger, createTestDatabase, type TestDatabase, waitFor } from '@millrace/testing';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createDatabase, type Database, DatabaseUnavailableError, isUniqueViolation } from './db.ts';

let test: TestDatabase;
let db: Database;
const log = captureLogger();

beforeAll(async () => {
  test = await createTestDatabase();
  db = createDatabase({
    connectionString: test.connectionString,
    max: 4,
    // Well above PostgreSQL's own second before it looks for deadlocks.
    statementTimeoutMs: 5_000,
    logger: log.logger,
  });
  await db.query('create table counter (id int primary key, value int not null)');
});
afterAll(async () => {
  await db.close();
  await test.drop();
});

const pidOf = async (runner: Pick<Database, 'query'>): Promise<number> =>
  (await runner.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid ?? 0;

describe('query', () => {
  it('gives int8 as a number, timestamps as dates, and counts rows', async () => {
    const { rows, rowCount } = await db.query(
      `select count(*) as n, 9007199254740991::int8 as big, 'epoch'::timestamptz as at from generate_series(1, 3)`,
    );
    expect(rows).toEqual([{ n: 3, big: Number.MAX_SAFE_INTEGER, at: new Date(0) }]);
    expect(rowCount).toBe(1);
  });

  it('refuses an int8 that a number cannot hold, rather than rounding it', async () => {
    await expect(db.query('select 9007199254740993::int8')).rejects.toThrow(RangeError);
  });

  it('prepares named statements once per connection', async () => {
    await db.transaction(async (tx) => {
      for (const value of [1, 2]) {
        const { rows } = await tx.query('select $1::int as value', [value], 'test-named');
        expect(rows).toEqual([{ value }]);
      }
      const { rows } = await tx.query(
        `select count(*) as n from pg_prepared_statements where name = 'test-named'`,
      );
      expect(rows).toEqual([{ n: 1 }]);
    });
  });

  it('ends a statement that runs too long as unavailable', async () => {
    await expect(db.query('select pg_sleep(30)')).rejects.toThrow(DatabaseUnavailableError);
  });

  it('leaves mistakes in SQL as they are', async () => {
    await expect(db.query('select nonsense')).rejects.toMatchObject({ code: '42703' });
  });
});

describe('transaction', () => {
  it('commits what its work did, and rolls back when it rejects', async () => {
    await db.transaction((tx) => tx.query('insert into counter values (1, 0)'));
    const failure = new Error('no');
    await expect(
      db.transaction(async (tx) => {
        await tx.query('update counter set value = 99 where id = 1');
        throw failure;
      }),
    ).rejects.toBe(failure);
    expect((await db.query('select value from counter where id = 1')).rows).toEqual([{ value: 0 }]);
  });

  it('tells a unique violation, by constraint too', async () => {
    const error: unknown = await db
      .transaction((tx) => tx.query('insert into counter values (1, 0)'))
      .catch((reason: unknown) => reason);
    expect(isUniqueViolation(error)).toBe(true);
    expect(isUniqueViolation(error, 'counter_pkey')).toBe(true);
    expect(isUniqueViolation(error, 'other')).toBe(false);
    expect(isUniqueViolation(new Error('no'))).toBe(false);
  });

  it('rejects when its work went on after a failed statement, since nothing was committed', async () => {
    await expect(
      db.transaction(async (tx) => {
        await tx.query('insert into counter values (1, 0)').catch(() => undefined);
      }),
    ).rejects.toThrow('went on after one of its statements failed');
  });

  it('runs again after a deadlock, and both rivals get their way', async () => {
    await db.query('insert into counter values (2, 0), (3, 0)');
    const first = Promise.withResolvers<undefined>();
    const second = Promise.withResolvers<undefined>();
    let runs = 0;
    const rival = (ids: [number, number], mine: typeof first, theirs: typeof first): Promise<void> =>
      db.transaction(async (tx) => {
        runs++;
        await tx.query('update counter set value = value + 1 where id = $1', [ids[0]]);
        mine.resolve(undefined);
        await theirs.promise;
        await tx.query('update counter set value = value + 1 where id = $1', [ids[1]]);
      });
    await Promise.all([rival([2, 3], first, second), rival([3, 2], second, first)]);
    expect(runs).toBeGreaterThan(2);
    const { rows } = await db.query('select value from counter where id in (2, 3)');
    expect(rows).toEqual([{ value: 2 }, { value: 2 }]);
  });

  it('gives connections back whatever happens: more failures than connections', async () => {
    for (let i = 0; i < 10; i++) {
      await expect(db.transaction((tx) => tx.query('select nonsense'))).rejects.toThrow();
    }
    await expect(db.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  });
});

describe('lost connections', () => {
  /** Ends three idle connections of the pool on the server. */
  async function endIdleConnections(): Promise<void> {
    const pids = await Promise.all([1, 2, 3].map(() => pidOf(db)));
    expect(new Set(pids).size).toBe(3);
    const other = createDatabase({ connectionString: test.connectionString, max: 1, logger: log.logger });
    await other.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [pids]);
    await other.close();
  }
  const losses = (): number =>
    log.lines.filter((line) => line.message === 'database connection lost while idle').length;

  it('survives the end of all idle connections (a restart): the next query works', async () => {
    await endIdleConnections();
    // At once, perhaps before this process has heard of it.
    await expect(db.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  });

  it('hears of idle connections that end, and the next query works', async () => {
    const before = losses();
    await endIdleConnections();
    // Nothing is asked meanwhile: a query could take the dead connections first.
    await waitFor(() => losses() > before);
    await expect(db.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  });

  it('begins a transaction after a restart, though every pooled connection is dead', async () => {
    const pids = await Promise.all([1, 2, 3, 4].map(() => pidOf(db)));
    const other = createDatabase({ connectionString: test.connectionString, max: 1, logger: log.logger });
    await other.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [pids]);
    await expect(db.transaction((tx) => tx.query('select 1'))).resolves.toMatchObject({ rowCount: 1 });
    await other.close();
  });

  it('survives the end of a connection between two statements of a transaction', async () => {
    const killed = db.transaction(async (tx) => {
      const pid = await pidOf(tx);
      await db.query('select pg_terminate_backend($1)', [pid]);
      await waitFor(async () => {
        const { rows } = await db.query('select 1 from pg_stat_activity where pid = $1', [pid]);
        return rows.length === 0;
      });
      await tx.query('select 1');
    });
    await expect(killed).rejects.toThrow(DatabaseUnavailableError);
    await expect(db.transaction((tx) => tx.query('select 1'))).resolves.toMatchObject({ rowCount: 1 });
  });

  it('is unavailable while nobody listens, and when the pool is exhausted', async () => {
    const metrics = createMetrics({ service: 'test' });
    const nobody = createDatabase({
      ...{ connectionString: 'postgres://127.0.0.1:1/x', logger: log.logger, metrics },
    });
    await expect(nobody.query('select 1')).rejects.toThrow(DatabaseUnavailableError);
    await expect(nobody.transaction(() => Promise.resolve())).rejects.toThrow(DatabaseUnavailableError);
    await nobody.close();
    expect(await metrics.render()).toContain('millrace_db_unavailable_total{service="test"} 2');

    const small = createDatabase({
      metrics,
      connectionString: test.connectionString,
      max: 1,
      connectTimeoutMs: 300,
      logger: log.logger,
    });
    const release = Promise.withResolvers<undefined>();
    const holding = small.transaction(async () => {
      await release.promise;
    });
    await expect(small.query('select 1')).rejects.toThrow(DatabaseUnavailableError);
    const waiting = small.query('select 1');
    await waitFor(async () => /^millrace_db_waiting\{.*\} 1$/m.test(await metrics.render()));
    expect(await metrics.render()).toMatch(/^millrace_db_connections\{.*\} 1$/m);
    release.resolve(undefined);
    await holding;
    await waiting;
    await expect(small.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
    await small.close();
  });

  it('is unavailable, within its bound, when the server goes silent', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const mute = createDatabase({
      connectionString: `postgres://127.0.0.1:${port}/x`,
      connectTimeoutMs: 300,
      logger: log.logger,
    });
    await expect(mute.query('select 1')).rejects.toThrow(DatabaseUnavailableError);
    await mute.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });
});
