import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type PlaybackUsageMessage } from '@millrace/contract';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase } from '@millrace/testing';
import { createDatabase, type Database } from './db.ts';
import { accountUsage } from './account-usage.ts';
import { purgeViews } from './purge.ts';
import { correctedDrifts } from './testing/usage.ts';
import { countWatchedTime, reconcileWatchLimits, type WatchedTime } from './watched-time.ts';

type View = PlaybackUsageMessage['views'][number];

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let db: Database;
let accountId: string;
let accounts = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  db = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});
beforeEach(async () => {
  accountId = `acc_${++accounts}`;
  await db.query(
    `insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
     values ($1, 'A', 'free', 1, now(), now())`,
    [accountId],
  );
  await db.query(
    `insert into usage (account_id, period_start, period_end, updated_at)
     values ($1, date_trunc('month', now()), date_trunc('month', now()) + interval '1 month', now())`,
    [accountId],
  );
});

const view = (indexes: readonly number[], change: Partial<View> = {}): View => ({
  ...{ tokenHash: `t${accountId}`, ipHash: 'ip', videoId: 'vid_1', at: new Date().toISOString() },
  segments: indexes.map((index) => ({ index, ms: 6_000 })),
  ...change,
});
const count = (...views: View[]): Promise<WatchedTime | null> =>
  db.transaction((tx) => countWatchedTime(tx, { accountId, views }));
const usage = async (): Promise<{ watchedMs: number; over: boolean; states: number; version: number }> => {
  const { rows } = await db.query<{ watchedMs: number; over: boolean; states: number; version: number }>(
    `select u.watched_ms as "watchedMs", a.over_watch_limit as over, a.version,
       (select count(*) from outbox o where o.key = a.id) as states
     from usage u join accounts a on a.id = u.account_id where a.id = $1`,
    [accountId],
  );
  if (rows[0] === undefined) throw new Error('no usage');
  return rows[0];
};
const use = (watchedMs: number): Promise<unknown> =>
  db.query('update usage set watched_ms = $2 where account_id = $1', [accountId, watchedMs]);

describe('counting watched time', () => {
  it('counts a segment once for each token, address and video', async () => {
    expect(await count(view([0, 1]))).toEqual({ countedMs: 12_000, limitReached: false });
    expect(await count(view([1, 2]), view([2, 3]))).toEqual({ countedMs: 12_000, limitReached: false });
    expect((await count(view([0], { ipHash: 'other' })))?.countedMs).toBe(6_000);
    expect((await count(view([0], { tokenHash: `u${accountId}` })))?.countedMs).toBe(6_000);
    expect((await count(view([0], { videoId: 'vid_2' })))?.countedMs).toBe(6_000);
    expect((await usage()).watchedMs).toBe(42_000);
  });

  it('counts a message that comes again, or ten times at once, as one', async () => {
    const views = [view([0, 5, 9]), view([3], { ipHash: 'other' })];
    const counted = await Promise.all(Array.from({ length: 10 }, () => count(...views)));
    expect(counted.reduce((sum, each) => sum + (each?.countedMs ?? 0), 0)).toBe(24_000);
    expect((await usage()).watchedMs).toBe(24_000);
  });

  it('does not count what was watched before the period began, nor a second time after', async () => {
    const before = view([0], { at: '2020-01-01T00:00:00.000Z' });
    expect((await count(before))?.countedMs).toBe(0);
    expect((await count(view([0, 1])))?.countedMs).toBe(6_000);
  });

  it('adds up to the millisecond, and is shown in whole minutes that are over [MET-003]', async () => {
    const watch = (index: number, ms: number): Promise<unknown> =>
      count(view([], { segments: [{ index, ms }] }));
    const shown = async (): Promise<number> =>
      (await db.transaction((tx) => accountUsage(tx, accountId))).usage.watchedMinutes;
    for (let index = 0; index < 59; index++) await watch(index, 1_001);
    await watch(59, 940);
    expect([(await usage()).watchedMs, await shown()]).toEqual([59_999, 0]);
    await watch(60, 1);
    expect([(await usage()).watchedMs, await shown()]).toEqual([60_000, 1]);
  });

  it('of an account that is gone counts nothing', async () => {
    accountId = 'acc_gone';
    expect(await count(view([0]))).toBeNull();
  });
});

describe('the watch limit', () => {
  const limitMs = 5_000 * 60_000;

  it('is told to the CDN by the batch that reaches it, once [MET-009]', async () => {
    await use(limitMs - 12_000);
    expect((await count(view([0])))?.limitReached).toBe(false);
    expect(await usage()).toMatchObject({ over: false, states: 0 });
    expect((await count(view([1])))?.limitReached).toBe(true);
    expect(await usage()).toMatchObject({ over: true, states: 1, version: 2 });
    expect((await count(view([2])))?.limitReached).toBe(false);
    expect(await usage()).toMatchObject({ over: true, states: 1 });
  });

  it('marks a paid account too, whose state says that it plays on [MET-010]', async () => {
    await db.query(`update accounts set plan_id = 'starter' where id = $1`, [accountId]);
    await use(50_000 * 60_000);
    await count(view([0]));
    const { rows } = await db.query<{ value: { state: { overWatchLimit: boolean } } }>(
      'select value from outbox where key = $1',
      [accountId],
    );
    expect([(await usage()).over, rows[0]?.value.state.overWatchLimit]).toEqual([true, false]);
  });

  it('is nothing to a plan without one', async () => {
    await db.query(`update accounts set plan_id = 'agency' where id = $1`, [accountId]);
    await use(Number.MAX_SAFE_INTEGER - 10_000);
    expect((await count(view([0])))?.limitReached).toBe(false);
  });

  it('is settled after an upgrade, a downgrade and a change of the plan itself', async () => {
    await use(limitMs);
    expect(await reconcileWatchLimits(db)).toBe(1);
    expect(await usage()).toMatchObject({ over: true, states: 1 });
    await db.query(`update accounts set plan_id = 'starter' where id = $1`, [accountId]);
    expect(await reconcileWatchLimits(db)).toBe(1);
    expect(await usage()).toMatchObject({ over: false, states: 2 });
    await db.query(`update accounts set plan_status = 'canceled' where id = $1`, [accountId]);
    expect(await reconcileWatchLimits(db)).toBe(1);
    expect(await usage()).toMatchObject({ over: true, states: 3 });
    expect(await reconcileWatchLimits(db)).toBe(0);
  });

  it('ends with the period', async () => {
    await use(limitMs);
    await reconcileWatchLimits(db);
    await db.query(
      `update usage set period_start = period_start - interval '1 month', period_end = period_start
       where account_id = $1`,
      [accountId],
    );
    expect(await reconcileWatchLimits(db)).toBe(1);
    expect(await usage()).toMatchObject({ over: false, watchedMs: 0, states: 2 });
  });

  it('is settled in one run of all accounts, behind one that cannot be', async () => {
    // A sum that no number holds.
    await db.query(
      `insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
       values ('acc_0', 'A', 'free', 1, now(), now())`,
    );
    await db.query(
      `insert into usage (account_id, period_start, period_end, updated_at, watched_ms)
       values ('acc_0', now(), now() + interval '1 day', now(), 9007199254740993)`,
    );
    await use(limitMs);
    await expect(reconcileWatchLimits(db, { limit: 1 })).rejects.toThrow(AggregateError);
    expect((await usage()).over).toBe(true);
    await db.query(`delete from usage where account_id = 'acc_0'`);
  });
});

describe('views', () => {
  it('are forgotten when their tokens can be alive no more', async () => {
    await count(view([0]), view([0], { ipHash: 'old' }), view([0], { ipHash: 'older' }));
    await db.query(
      `update playback_views set updated_at = now() - interval '3 days 1 minute'
       where token_hash = $1 and ip_hash like 'old%'`,
      [`t${accountId}`],
    );
    expect(await purgeViews(db, { limit: 1 })).toBe(2);
    expect((await count(view([0])))?.countedMs).toBe(0);
  });
});

describe('drift of usage', () => {
  it('is corrected from the reservations that stand, and reported', async () => {
    await db.query(
      `insert into projects (id, account_id, name, created_at, updated_at) values ($1, $2, 'P', now(), now())`,
      [`prj_${accountId}`, accountId],
    );
    const reserve = async (name: string, released: boolean, ageMonths = 0): Promise<void> => {
      const videoId = `vid_${name}_${accountId}`;
      await db.query(
        `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
         values ($1, $2, $3, 'T', 'ready', 1, now(), now())`,
        [videoId, `prj_${accountId}`, accountId],
      );
      await db.query(
        `insert into usage_reservations (video_id, kind, account_id, amount_ms, period_start, created_at, released_at)
         select $1, kind, $2, 1000, date_trunc('month', now()) - $4 * interval '1 month', now(),
           case when $3 then now() end
         from unnest(array['stored', 'upload']) kind`,
        [videoId, accountId, released, ageMonths],
      );
    };
    await reserve('now', false);
    await reserve('gone', true);
    await reserve('before', false, 1);
    await db.query('update usage set stored_ms = 5, upload_ms = 7 where account_id = $1', [accountId]);
    expect(await correctedDrifts(db)).toEqual([
      { accountId, kind: 'stored', wasMs: 5, isMs: 2_000 },
      { accountId, kind: 'upload', wasMs: 7, isMs: 1_000 },
    ]);
    expect(await correctedDrifts(db)).toEqual([]);
    // A video that is deleted or failed holds nothing, whatever its reservation says.
    await db.query(`update videos set deleted_at = now(), deleted_by = 'team' where id = $1`, [
      `vid_now_${accountId}`,
    ]);
    await db.query(
      `update videos set status = 'failed', failure_code = 'invalid_file', failure_message = 'M' where id = $1`,
      [`vid_before_${accountId}`],
    );
    expect(await correctedDrifts(db)).toEqual([{ accountId, kind: 'stored', wasMs: 2_000, isMs: 0 }]);
    expect(await correctedDrifts(db)).toEqual([]);
  });
});
