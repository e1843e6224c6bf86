import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase, type TestDatabase } from '@millrace/testing';
import { createDatabase, type Database } from './db.ts';
import { createRateWindows, type RateHit } from './rate-windows.ts';

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
const hit = (client: string, startsAt = at, bucket = 'v1'): RateHit => ({ bucket, client, startsAt });
const sorted = (counts: readonly number[]): number[] => [...counts].sort((a, b) => a - b);
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

describe('rate windows', () => {
  it('give each request of a window its own number, whichever replica counts it', async () => {
    const [one, two] = [createRateWindows(store), createRateWindows(store)];
    const counts = await Promise.all(upTo(200).map((n) => (n % 2 ? one : two).hit(hit('a'))));
    expect(sorted(counts)).toEqual(upTo(200));
    expect(await one.hit(hit('a'))).toBe(201);
  });

  it('keep clients, windows and buckets apart', async () => {
    const windows = createRateWindows(store);
    const later = new Date(at.getTime() + 60_000);
    await windows.hit(hit('b'));
    const others = [hit('c'), hit('b', later), hit('b', at, 'auth')];
    expect(await Promise.all(others.map((each) => windows.hit(each)))).toEqual([1, 1, 1]);
    expect(await windows.hit(hit('b'))).toBe(2);
  });

  it('do not deadlock when many replicas count many clients', async () => {
    const replicas = upTo(4).map(() => createRateWindows(store));
    const clients = upTo(50).map((n) => `many-${n}`);
    const counts = await Promise.all(
      replicas.flatMap((windows, i) =>
        (i % 2 ? clients : clients.toReversed()).map((client) => windows.hit(hit(client))),
      ),
    );
    expect(sorted(counts)).toEqual(sorted(clients.flatMap(() => upTo(4))));
  });

  it('reject while the record cannot count, and go on when it can', async () => {
    const broken = { down: true };
    const windows = createRateWindows({
      query: (...args: Parameters<Database['query']>) =>
        broken.down ? Promise.reject(new Error('down')) : store.query(...args),
    });
    await expect(windows.hit(hit('d'))).rejects.toThrow('down');
    broken.down = false;
    expect(await windows.hit(hit('d'))).toBe(1);
  });
});
