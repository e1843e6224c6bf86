import { beforeEach, describe, expect, it } from '@jest/globals';
import { race, seedAccount, type SeededAccount, seedProcessingVideo } from '@millrace/testing';
import { type Database, moveVideo } from './index.ts';
import { db, useDatabase } from './testing/database.ts';
import { correctedDrifts, reserve, usageOf } from './testing/usage.ts';
import { correctUsageDrift, type UsageDrift } from './usage-drift.ts';

let account: SeededAccount;

useDatabase();
beforeEach(async () => {
  account = await seedAccount(db);
});

/** A video whose encode was planned: its job has a manifest, and it holds what that measured. */
async function planned(durationMs: number): Promise<string> {
  const videoId = await seedProcessingVideo(db, account);
  await db.query(
    `insert into encode_jobs (id, video_id, account_id, state, trace, manifest, created_at)
     values ('job_' || $1, $1, $2, 'running', '{}', $3, now())`,
    [videoId, account.accountId, { durationSeconds: durationMs / 1_000 }],
  );
  await db.query(`update videos set current_job_id = 'job_' || id where id = $1`, [videoId]);
  await reserve(account.accountId, { videoId, durationMs });
  return videoId;
}
/** One that plays; what does is a part of a frame longer than what was planned. */
async function ready(durationMs: number): Promise<string> {
  const videoId = await planned(durationMs);
  await db.transaction((tx) =>
    moveVideo(tx, videoId, { type: 'encoding_finished' }, { changes: { durationMs: durationMs + 20 } }),
  );
  return videoId;
}
const used = () => usageOf(account.accountId);

describe('what videos hold of limits', () => {
  it('is left alone where it is what was measured', async () => {
    await planned(1_001);
    await ready(2_033);
    await seedProcessingVideo(db, account);
    expect(await correctedDrifts()).toEqual([]);
    expect(await used()).toEqual({ stored: 3_034, upload: 3_034 });
  });

  it('is held again by those that stopped holding it, in their sums too [LIM-106]', async () => {
    const [lost, released, kept] = [await ready(1_000), await planned(2_000), await ready(4_000)];
    await db.query(`delete from usage_reservations where video_id = $1`, [lost]);
    await db.query(`update usage_reservations set released_at = now() where video_id = $1`, [released]);
    await db.query(`update usage set stored_ms = 4000, upload_ms = 4000 where account_id = $1`, [
      account.accountId,
    ]);
    const { accountId } = account;
    const found = await correctedDrifts();
    const each = [lost, released].flatMap((videoId, at) =>
      ['stored', 'upload'].map((kind) => ({ accountId, videoId, kind, wasMs: 0, isMs: 1_000 * (at + 1) })),
    );
    expect(found).toHaveLength(6);
    expect(found).toEqual(
      expect.arrayContaining([
        ...each,
        { accountId, kind: 'stored', wasMs: 4_000, isMs: 7_000 },
        { accountId, kind: 'upload', wasMs: 4_000, isMs: 7_000 },
      ]),
    );
    expect(await correctedDrifts()).toEqual([]);
    for (const videoId of [lost, released, kept])
      await db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' }));
    expect(await used()).toEqual({ stored: 0, upload: 7_000 });
  });

  it('becomes what was measured, of one that waits, plays or is held', async () => {
    const videoIds = [await planned(1_000), await ready(2_000), await ready(3_000)];
    await db.transaction((tx) =>
      moveVideo(tx, videoIds[2] ?? '', { type: 'hold_placed', legal: false, reason: null }),
    );
    await db.query(`update usage_reservations set amount_ms = amount_ms + 500 where account_id = $1`, [
      account.accountId,
    ]);
    await db.query(
      `update usage set stored_ms = stored_ms + 1500, upload_ms = upload_ms + 1500
      where account_id = $1`,
      [account.accountId],
    );
    expect(await correctedDrifts()).toHaveLength(8);
    expect(await used()).toEqual({ stored: 6_000, upload: 6_000 });
    expect(await correctedDrifts()).toEqual([]);
  });

  it('of an upload is charged to no other period', async () => {
    const videoId = await ready(1_000);
    await db.query(`update encode_jobs set created_at = now() - interval '2 months' where video_id = $1`, [
      videoId,
    ]);
    await db.query(`delete from usage_reservations where video_id = $1 and kind = 'upload'`, [videoId]);
    await db.query('update usage set upload_ms = 0 where account_id = $1', [account.accountId]);
    expect(await correctedDrifts()).toEqual([]);
    expect(await used()).toEqual({ stored: 1_000, upload: 0 });
  });

  it('is right whoever deletes meanwhile, and however many correct it', async () => {
    const videoIds = await Promise.all(Array.from({ length: 8 }, () => ready(1_000)));
    await db.query(`delete from usage_reservations where account_id = $1 and kind = 'stored'`, [
      account.accountId,
    ]);
    await db.query('update usage set stored_ms = 0 where account_id = $1', [account.accountId]);
    const gone = videoIds.slice(0, 4);
    await race([
      correctedDrifts,
      correctedDrifts,
      ...gone.map(
        (videoId) => () => db.transaction((tx) => moveVideo(tx, videoId, { type: 'customer_delete' })),
      ),
    ]);
    await correctedDrifts();
    expect(await used()).toEqual({ stored: 4_000, upload: 8_000 });
    expect(await correctedDrifts()).toEqual([]);
  });
});

describe.each([1, 2, 100])('of accounts that are looked at by %i', (limit) => {
  it('one that cannot be put right keeps none waiting, and what was put right is told', async () => {
    const accounts: string[] = [];
    for (let count = 0; count < 3; count++) {
      account = await seedAccount(db);
      accounts.push(account.accountId);
      await planned(1_000);
    }
    const [first = '', poison = '', last = ''] = accounts.sort();
    const measure = (of: string, durationSeconds: unknown): Promise<unknown> =>
      db.query('update encode_jobs set manifest = $2 where account_id = $1', [of, { durationSeconds }]);
    await db.query('update usage set stored_ms = 0 where account_id = any ($1)', [accounts]);
    await measure(last, 2);
    await measure(poison, 'unknown');

    const told: UsageDrift[] = [];
    const looks: number[] = [];
    const watched: Database = {
      ...db,
      query: (text, values, name) => {
        if (name === 'usage-drifted') looks.push((values?.[0] as string[]).length);
        return db.query(text, values, name);
      },
    };
    await expect(
      correctUsageDrift(watched, { onDrift: (drift) => told.push(drift), limit }),
    ).rejects.toMatchObject({ errors: [{ message: `the usage of ${poison} could not be put right` }] });
    expect(told.filter(({ videoId }) => videoId === undefined)).toEqual([
      { accountId: first, kind: 'stored', wasMs: 0, isMs: 1_000 },
      { accountId: last, kind: 'stored', wasMs: 0, isMs: 2_000 },
      { accountId: last, kind: 'upload', wasMs: 1_000, isMs: 2_000 },
    ]);
    expect(Math.max(...looks)).toBeLessThanOrEqual(limit);

    await measure(poison, 1);
    expect(await correctedDrifts()).toEqual([{ accountId: poison, kind: 'stored', wasMs: 0, isMs: 1_000 }]);
    expect(await usageOf(poison)).toEqual({ stored: 1_000, upload: 1_000 });
  });
});
