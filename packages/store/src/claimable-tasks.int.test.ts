import { describe, expect, it } from '@jest/globals';
import { seedAccount, type SeededAccount } from '@millrace/testing';
import { attemptOf, failTask, finishPlan } from './index.ts';
import {
  claim,
  column,
  db,
  mustClaim,
  one,
  queueImport,
  queueVideo,
  somePlan,
  useEncodeQueue,
} from './testing/encode-queue.ts';
import { explain } from './testing/explain.ts';
import { queuePosters, seedReadyVideo, wish } from './testing/posters.ts';

useEncodeQueue();

const claimable = (): Promise<unknown[]> => column('select id as it from claimable_tasks order by id');

/** What encoders of the class standard are given until there is nothing more. */
async function claimAll(): Promise<unknown[]> {
  const given: string[] = [];
  for (let task = await claim(); task !== null; task = await claim()) given.push(task.id);
  return given.sort();
}

/** Of one job's two tasks the first runs, the other waits. */
async function begin(): Promise<void> {
  await finishPlan(db, await mustClaim(), somePlan());
  await mustClaim();
}

const failFirst = async (): Promise<unknown> =>
  failTask(db, attemptOf(await mustClaim()), { kind: 'encoding', message: 'SIGSEGV' });

const pause = (scope: string, subject: string): Promise<unknown> =>
  db.query('insert into encode_pauses (scope, subject, paused_at) values ($1, $2, now())', [scope, subject]);

describe('a task counts as claimable when encoders without end would be given it:', () => {
  it.each<[string, number, (account: SeededAccount) => Promise<unknown>]>([
    ['as many encodes as the plan runs at once', 2, () => Promise.resolve()],
    ['one beside one that runs', 1, mustClaim],
    [
      'none beside as many as may run',
      0,
      async () => {
        await mustClaim();
        await mustClaim();
      },
    ],
    [
      'what is left of an encode that runs, beside as many as may run',
      1,
      async () => {
        await finishPlan(db, await mustClaim(), somePlan());
        await mustClaim();
        await mustClaim();
      },
    ],
    ['what is left of an encode that runs, and one beside it', 2, begin],
    [
      'what is due of an encode that runs, and one beside it',
      1,
      async () => {
        await begin();
        await db.query(`update encode_tasks set run_after = now() + interval '1 h' where kind = 'audio'`);
      },
    ],
    [
      'an encode that is between two of its tasks before one that has not begun',
      3,
      async () => {
        await finishPlan(db, await mustClaim(), somePlan());
      },
    ],
    [
      'none beside one of each class of encoders',
      0,
      async () => {
        await db.query(`update encode_tasks set class = 'large' where right(id, 1) = '6'`);
        await mustClaim();
        await claim('large');
      },
    ],
    [
      'the most urgent',
      2,
      () => db.query(`update encode_tasks set priority = 5 where right(id, 1) in ('4', '6')`),
    ],
    ['what is due', 2, failFirst],
    [
      'nothing while none is due',
      0,
      () => db.query(`update encode_tasks set run_after = now() + interval '1 h'`),
    ],
    [
      'as many as the free plan runs when the account’s is canceled',
      2,
      (account) =>
        db.query(`update accounts set plan_id = 'agency', plan_status = 'canceled' where id = $1`, [
          account.accountId,
        ]),
    ],
    [
      'all on a plan that runs so many',
      6,
      (account) => db.query(`update accounts set plan_id = 'pro' where id = $1`, [account.accountId]),
    ],
    ['one poster beside them', 3, (account) => queuePosters(account, 3)],
    [
      'a poster that is due',
      3,
      async (account) => {
        await queuePosters(account, 3);
        await db.query(
          `update encode_tasks set run_after = now() + interval '1 h' where kind = 'poster' and id like '%1'`,
        );
      },
    ],
    [
      'no poster beside one that is made',
      2,
      async (account) => {
        await queuePosters(account, 3);
        await mustClaim();
      },
    ],
    [
      'no poster while a worker may still be at one that is not wanted any more',
      2,
      async (account) => {
        const videoId = await seedReadyVideo(account);
        await wish(videoId, 1);
        await mustClaim();
        await wish(videoId, 2);
      },
    ],
    ['nothing while everything is paused', 0, () => pause('all', '')],
    ['nothing while the class is paused', 0, () => pause('class', 'standard')],
    ['nothing while the account is paused', 0, (account) => pause('account', account.accountId)],
    ['as many while another class is paused', 2, () => pause('class', 'large')],
    [
      'as much of each account that has something',
      4,
      async () => queueImport(await seedAccount(db, { planId: 'free' }), 4),
    ],
  ])('%s', async (_, count, prepare) => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueImport(account, 6);
    await prepare(account);
    const before = await claimable();
    expect(before).toHaveLength(count);
    expect(before).toEqual(await claimAll());
  });

  it('of each class by itself', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueImport(account, 6);
    await db.query(`update encode_tasks set class = 'large' where right(id, 1) > '3'`);
    const kinds = (): Promise<unknown[]> =>
      column(
        `select c.class || ' ' || kind as it from claimable_tasks c join encode_tasks using (id) order by 1, id`,
      );
    expect(
      await column(`select class || ' ' || right(id, 1) as it from claimable_tasks order by id`),
    ).toEqual(['standard 1', 'standard 2', 'large 4', 'large 5']);
    await begin();
    expect(await kinds()).toEqual(['large plan', 'standard audio', 'standard plan']);
    await db.query(`update encode_tasks set class = 'large' where kind = 'audio'`);
    expect(await kinds()).toEqual(['large audio', 'large plan', 'standard plan']);
  });
});

describe('a task could have been claimed', () => {
  /** In SQL: so many minutes before some noon that is past. */
  const ago = (minutes: number): string => `(timestamptz '2026-01-01 12:00Z' - interval '${minutes} min')`;

  /** For how many minutes until then, by the last digit of its id. */
  const since = (): Promise<unknown[]> =>
    column(
      `select right(id, 1) || ': ' || extract(epoch from ${ago(0)} - since)::int / 60 as it
       from claimable_tasks order by id`,
    );

  /** What runs ends, each so many minutes ago. */
  async function endRunning(...minutes: number[]): Promise<void> {
    for (const at of minutes) {
      const { id } = await one<{ id: string }>(
        `update encode_tasks set status = 'done' where id = (
           select id from encode_tasks where status = 'processing' order by id limit 1) returning job_id as id`,
      );
      await db.query(`update encode_jobs set state = 'succeeded', finished_at = ${ago(at)} where id = $1`, [
        id,
      ]);
    }
  }

  /** A job that has ended at that noon. */
  const endedBefore = ({ accountId }: SeededAccount, { isPoster }: { isPoster: boolean }): Promise<unknown> =>
    db.query(
      `insert into encode_jobs (id, video_id, account_id, is_poster, state, created_at, finished_at)
       select 'job_other', id, account_id, $2, 'succeeded', now(), ${ago(0)} from videos where account_id = $1 limit 1`,
      [accountId, isPoster],
    );

  async function overtaxed(): Promise<SeededAccount> {
    const account = await seedAccount(db, { planId: 'free' });
    await queueImport(account, 6);
    await db.query(`update encode_tasks set run_after = ${ago(90)}`);
    return account;
  }

  it('since it was due, where its account never ran as many jobs as it may', async () => {
    await overtaxed();
    expect(await since()).toEqual(['1: 90', '2: 90']);
    await mustClaim();
    expect(await since()).toEqual(['2: 90']);
  });

  it('since a job of its account ended that held its place', async () => {
    await endedBefore(await overtaxed(), { isPoster: true });
    await mustClaim();
    await mustClaim();
    expect(await since()).toEqual([]);
    await endRunning(30);
    expect(await since()).toEqual(['3: 30']);
    await endRunning(10);
    expect(await since()).toEqual(['3: 30', '4: 10']);
    await db.query(`update encode_tasks set run_after = ${ago(5)} where right(id, 1) = '4'`);
    expect(await since()).toEqual(['3: 30', '4: 5']);
    await mustClaim();
    expect(await since()).toEqual(['4: 5']);
  });

  it('since it was due, where its job has begun', async () => {
    const account = await overtaxed();
    await finishPlan(db, await mustClaim(), somePlan());
    await mustClaim();
    await mustClaim();
    await endedBefore(account, { isPoster: false });
    await mustClaim();
    expect(await since()).toEqual([]);
    await db.query(`update encode_tasks set status = 'queued', run_after = ${ago(7)} where kind = 'audio'`);
    expect((await since()).map((each) => String(each).slice(3))).toEqual(['7']);
  });

  it('since the last poster of its account was made, if it is one', async () => {
    const account = await seedAccount(db);
    await queuePosters(account, 3);
    await endedBefore(account, { isPoster: false });
    await db.query(`update encode_tasks set run_after = ${ago(90)}`);
    expect(await since()).toEqual(['1: 90']);
    await mustClaim();
    expect(await since()).toEqual([]);
    await endRunning(20);
    expect(await since()).toEqual(['2: 20']);
    // No encode takes a poster's place, and no poster an encode's.
    await queueVideo(account);
    await db.query(`update encode_tasks set run_after = ${ago(90)} where kind = 'plan'`);
    expect((await since()).map((each) => String(each).slice(3)).sort()).toEqual(['20', '90']);
  });
});

describe('what is claimable', () => {
  it.each([
    ['of one account', 1],
    ['of fifty accounts', 50],
  ])('is read as fast with 10,000 queued videos %s as with a few', async (_what, accounts) => {
    for (let i = 0; i < accounts; i++)
      await queueImport(await seedAccount(db, { planId: 'free' }), 10_000 / accounts);
    const other = await seedAccount(db);
    await queuePosters(other, 10_000);
    for (let n = 0; n < 3; n++) await mustClaim();
    await db.query('analyze encode_tasks, encode_jobs, accounts, plans');
    const { blocks, scanned } = await explain(
      db,
      'select class, sum(cost), min(since) from claimable_tasks group by 1',
    );
    expect(scanned).not.toContain('encode_tasks');
    expect(scanned).not.toContain('encode_jobs');
    expect(blocks).toBeLessThan(60 * (accounts + 2));
  });
});
