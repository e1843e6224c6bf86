import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, seedAccount, seedProcessingVideo, waitFor } from '@millrace/testing';
import { silentLogger } from '@millrace/platform';
import { createDatabase, type Database } from './db.ts';
import { createHoldCommands } from './holds.ts';
import { acquireLease, assertEpoch, LeaseLostError, releaseLease } from './leases.ts';

describe('leases', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let db: Database;
  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  const acquire = (name: string, holder: string): Promise<number | null> =>
    acquireLease(db, { name, holder, ttlMs: 60_000 });
  const expire = (name: string): Promise<unknown> =>
    db.query("update leases set expires_at = clock_timestamp() - interval '1 second' where name = $1", [
      name,
    ]);

  it('lets one holder in and renews it with the same epoch', async () => {
    expect(await acquire('a', 'one')).toBe(1);
    expect(await acquire('a', 'two')).toBeNull();
    expect(await acquire('a', 'one')).toBe(1);
  });

  it('raises the epoch for the holder that takes over', async () => {
    await acquire('b', 'one');
    await expire('b');
    expect(await acquire('b', 'two')).toBe(2);
    expect(await acquire('b', 'one')).toBeNull();
  });

  it('elects exactly one of many that ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => acquire('c', `holder-${i}`)));
    expect(answers.filter((epoch) => epoch !== null)).toEqual([1]);
  });

  it('is free at once after its holder gives it back, and only then', async () => {
    await acquire('d', 'one');
    await releaseLease(db, { name: 'd', holder: 'two' });
    expect(await acquire('d', 'two')).toBeNull();
    await releaseLease(db, { name: 'd', holder: 'one' });
    expect(await acquire('d', 'two')).toBe(2);
  });

  it('keeps what a former holder decided from being committed', async () => {
    const account = await seedAccount(db);
    const hold = { source: 'kubernetes', reference: 'default/h', reason: null, legal: false } as const;
    await acquire('e', 'one');
    const guarded = createHoldCommands(db, (tx) => assertEpoch(tx, { lease: 'e', epoch: 1 }));
    const [first, second] = [await seedProcessingVideo(db, account), await seedProcessingVideo(db, account)];
    await guarded.place({ ...hold, videoId: first }, 'one');
    await expire('e');
    await acquire('e', 'two');
    await expect(guarded.place({ ...hold, videoId: second }, 'one')).rejects.toThrow(LeaseLostError);
    await expect(guarded.lift({ ...hold, videoId: first }, 'one')).rejects.toThrow(LeaseLostError);
    const { rows } = await db.query('select video_id from video_holds where lifted_at is null');
    expect(rows).toEqual([{ video_id: first }]);
    const { rows: audited } = await db.query('select action from audit');
    expect(audited).toEqual([{ action: 'video.hold' }]);
  });

  it('is taken over only when what its holder is about to commit is committed', async () => {
    await acquire('f', 'one');
    const order: string[] = [];
    let takeover: Promise<unknown> | undefined;
    await db.transaction(async (tx) => {
      await assertEpoch(tx, { lease: 'f', epoch: 1 });
      // Renewals go on.
      expect(await acquire('f', 'one')).toBe(1);
      await expire('f');
      takeover = acquire('f', 'two').then((epoch) => order.push(`epoch ${epoch}`));
      const waits = `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%leases%'`;
      await waitFor(async () => order.length > 0 || (await db.query(waits)).rowCount > 0);
      order.push('committed');
    });
    await takeover;
    expect(order).toEqual(['committed', 'epoch 2']);
  });
});
