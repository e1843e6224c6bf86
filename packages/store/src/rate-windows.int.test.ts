import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase, type TestDatabase, waitFor } from '@millrace/testing';
import { createDatabase, type Database, type Queryable } from './db.ts';
import { createRateWindows, type RateHit, type RateWindows } from './rate-windows.ts';

let database: TestDatabase;
let store: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

const at = new Date('2026-01-01T00:00:00Z');
/** By default of a limit that is so low that the record is always asked first. */
const hit = (client: string, startsAt = at, bucket = 'v1', most = 4): RateHit => ({
  ...{ bucket, client, startsAt, most },
});
const lost: number[] = [];
const windowsOf = (db: Queryable): RateWindows =>
  createRateWindows(db, (passed) => {
    lost.push(passed);
  });
const sorted = (counts: readonly number[]): number[] => [...counts].sort((a, b) => a - b);
const allOf = (hits: readonly (number | Promise<number>)[]): Promise<number[]> =>
  Promise.all(hits.map(async (each) => await each));
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

describe('rate windows', () => {
  it('give each request of a window its own number, whichever replica counts it', async () => {
    const [one, two] = [windowsOf(store), windowsOf(store)];
    const counts = await allOf(upTo(200).map((n) => (n % 2 ? one : two).hit(hit('a'))));
    expect(sorted(counts)).toEqual(upTo(200));
    expect(await one.hit(hit('a'))).toBe(201);
  });

  it('keep clients, windows and buckets apart', async () => {
    const windows = windowsOf(store);
    const later = new Date(at.getTime() + 60_000);
    await windows.hit(hit('b'));
    const others = [hit('c'), hit('b', later), hit('b', at, 'auth')];
    expect(await allOf(others.map((each) => windows.hit(each)))).toEqual([1, 1, 1]);
    expect(await windows.hit(hit('b'))).toBe(2);
  });

  it('do not deadlock when many replicas count many clients', async () => {
    const replicas = upTo(4).map(() => windowsOf(store));
    const clients = upTo(50).map((n) => `many-${n}`);
    const counts = await allOf(
      replicas.flatMap((windows, i) =>
        (i % 2 ? clients : clients.toReversed()).map((client) => windows.hit(hit(client))),
      ),
    );
    expect(sorted(counts)).toEqual(sorted(clients.flatMap(() => upTo(4))));
  });

  it('far below a high limit answer at once and tell the record afterwards, also of the last ones', async () => {
    const [one, two] = [windowsOf(store), windowsOf(store)];
    const often = hit('e', at, 'v1', 1_200);
    expect(await one.hit(often)).toBe(1);
    const counts = upTo(40).map(() => one.hit(often));
    expect(counts).toEqual(upTo(40).map((n) => n + 1));
    await one.close();
    expect(await two.hit(often)).toBe(42);
  });

  it('tell the record by themselves a moment later', async () => {
    const windows = windowsOf(store);
    const often = hit('f', at, 'v1', 1_200);
    await windows.hit(often);
    expect(windows.hit(often)).toBe(2);
    const told = async (): Promise<boolean> => {
      const { rows } = await store.query<{ hits: number }>(
        'select hits from rate_windows where client = $1',
        ['f'],
      );
      return rows[0]?.hits === 2;
    };
    await waitFor(told, { what: 'the record to hear' });
  });

  it('ask the record first near the limit, where the count is exact', async () => {
    const [one, two] = [windowsOf(store), windowsOf(store)];
    const often = hit('g', at, 'v1', 1_200);
    for (const n of upTo(301)) expect(await one.hit(often)).toBe(n);
    expect(await two.hit(often)).toBe(302);
    const asked = await allOf(upTo(200).map((n) => (n % 2 ? one : two).hit(often)));
    expect(sorted(asked)).toEqual(upTo(200).map((n) => 302 + n));
  });

  it('lose what they let through when the record is away, and say so', async () => {
    const broken = { down: false };
    const windows = windowsOf({
      query: (...args: Parameters<Database['query']>) =>
        broken.down ? Promise.reject(new Error('down')) : store.query(...args),
    });
    const often = hit('h', at, 'v1', 1_200);
    await windows.hit(often);
    broken.down = true;
    expect(windows.hit(often)).toBe(2);
    lost.length = 0;
    await windows.close();
    expect(lost).toEqual([1]);
    await expect(windows.hit(often)).rejects.toThrow('down');
  });

  it('reject while the record cannot count, and go on when it can', async () => {
    const broken = { down: true };
    const windows = windowsOf({
      query: (...args: Parameters<Database['query']>) =>
        broken.down ? Promise.reject(new Error('down')) : store.query(...args),
    });
    await expect(windows.hit(hit('d'))).rejects.toThrow('down');
    broken.down = false;
    expect(await windows.hit(hit('d'))).toBe(1);
  });
});
