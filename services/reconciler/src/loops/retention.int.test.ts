import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createDatabase, type Database, expireRateWindows, expireRows } from '@millrace/store';
import { createManualClock, createTestDatabase } from '@millrace/testing';
import { allLoops, type LoopDeps } from './all.ts';

const page = readFileSync(new URL('../../../../docs/retention.md', import.meta.url), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| '))
  // Its head and the line below.
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()));
const named = (cell = ''): string[] => [...cell.matchAll(/`([a-z_-]+)`/g)].map(([, name = '']) => name);
/** Loops that are not in every reconciler's list: the relay's own, and chores of the embedded bus. */
const others = ['outbox-relay', 'prune-bus-log'];

describe('docs/retention.md', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  it('has every table of the record, and none that there is not', async () => {
    const { rows: tables } = await store.query<{ name: string }>(
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    );
    const told = new Set(rows.flatMap(([, , cell]) => named(cell)));
    expect([...told].sort()).toEqual(tables.map(({ name }) => name).sort());
  });

  it('names loops that there are', () => {
    const deps = {
      store,
      clock: createManualClock(),
      logger: silentLogger,
      metrics: createMetrics({ service: 'x' }),
    };
    const loops = allLoops({
      ...deps,
      bus: {},
      objects: {},
      txt: {},
      onEffective: () => undefined,
    } as unknown as LoopDeps);
    const known = [...loops.map(({ name }) => name), ...others];
    const told = rows.flatMap(([, , , , cell]) => named(cell));
    expect(told.filter((name) => !known.includes(name))).toEqual([]);
    expect(told.length).toBeGreaterThan(10);
  });

  it('is what the hourly loop does with rows past their time', async () => {
    await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
      values ('acc_1', 'A', 'free', 1, now(), now())`);
    await store.query(`insert into phone_challenges (id, account_id, phone_hash, code_hash, created_at, expires_at)
      select 'phc_' || days, 'acc_1', '\\x00', '\\x00', now() - days * interval '1 day', now()
      from unnest(array[29, 31]) days`);
    await store.query(`insert into idempotency (account_id, method, path, key, body_hash, created_at)
      select 'acc_1', 'POST', '/', hours::text, '\\x00', now() - hours * interval '1 hour' from unnest(array[23, 25]) hours`);
    expect(await expireRows(store)).toBe(2);
    const { rows: left } = await store.query<{ id: string }>(
      `select id from phone_challenges union all select key from idempotency order by 1`,
    );
    expect(left.map(({ id }) => id)).toEqual(['23', 'phc_29']);
  });

  it('keeps no rate window longer than it says, however many are over', async () => {
    await store.query(`insert into rate_windows (bucket, client, starts_at, hits)
      select 'v1', minutes::text, now() - minutes * interval '1 minute', 1 from unnest(array[9, 11, 12, 13]) minutes`);
    expect(await expireRateWindows(store, { limit: 2 })).toBe(3);
    expect((await store.query('select client from rate_windows')).rows).toEqual([{ client: '9' }]);
  });
});
