import { describe, expect, it } from '@jest/globals';
import { raceRounds, seedAccount } from '@millrace/testing';
import { type ClaimedTask } from './index.ts';
import {
  claim,
  claimAtOnce,
  db,
  end,
  queueImport,
  queueVideo,
  useEncodeQueue,
} from './testing/encode-queue.ts';
import { explainClaim } from './testing/explain.ts';

useEncodeQueue();

describe('an import of 200 videos', () => {
  interface Machines {
    slots: number;
    /** CPU seconds of a video task of the import, and of the single video. */
    costs: [number, number];
    plans?: [string, string];
    /** CPU seconds that the single video's account was given lately. */
    spent?: number;
    /** Tasks of the import that have ended when the single video comes. */
    ahead?: number;
  }

  /** Tasks of the import that were given out while one of the single video waited, from its upload until it is ready. */
  async function overtakings({ slots, costs, plans = ['agency', 'free'], spent = 0, ahead = 0 }: Machines) {
    const [importer, other] = [
      await seedAccount(db, { planId: plans[0] }),
      await seedAccount(db, { planId: plans[1] }),
    ];
    await queueImport(importer, 200);
    await db.query('insert into encode_shares (account_id, recent, at) values ($1, $2, now())', [
      other.accountId,
      spent,
    ]);
    const running: ClaimedTask[] = [];
    const given: ClaimedTask[] = [];
    const fill = async (): Promise<void> => {
      while (running.length < slots) {
        const { rows } = await db.query(
          `select from encode_tasks where account_id = $1 and status = 'queued'`,
          [other.accountId],
        );
        const task = await claim();
        if (task === null) return;
        running.push(task);
        if (rows.length > 0 && task.accountId === importer.accountId) given.push(task);
      }
    };
    const step = async (): Promise<void> => {
      const task = running.shift();
      if (task === undefined) throw new Error('nothing runs');
      await end(task, task.accountId === importer.accountId ? costs[0] : costs[1]);
      await fill();
    };
    await fill();
    for (let ended = 0; ended < ahead; ended++) await step();
    const { videoId } = await queueVideo(other);
    const isReady = async (): Promise<boolean> =>
      (await db.query(`select from videos where id = $1 and status = 'ready'`, [videoId])).rowCount > 0;
    while (!(await isReady())) await step();
    return given.length;
  }

  it.each<[string, Machines]>([
    ['with one slot', { slots: 1, costs: [50, 50] }],
    ['with one slot, long under way', { slots: 1, costs: [50, 50], ahead: 30 }],
    ['with four slots', { slots: 4, costs: [50, 50], ahead: 10 }],
    ['with sixteen slots', { slots: 16, costs: [50, 50] }],
    ['that is a film among clips', { slots: 1, costs: [5, 5_000] }],
    ['that is a film among clips, with four slots', { slots: 4, costs: [5, 5_000], ahead: 10 }],
    ['of an account that has just encoded much', { slots: 1, costs: [5, 50], spent: 100_000 }],
    ['of an account that has just encoded much, with four slots', { slots: 4, costs: [5, 50], spent: 1e5 }],
    ['of a larger plan', { slots: 2, costs: [5, 500], plans: ['free', 'agency'] }],
    ['of the same plan', { slots: 2, costs: [5, 500], plans: ['pro', 'pro'] }],
  ])('delays a single video %s by one task at most [LIM-113]', async (_what, machines) => {
    expect(await overtakings(machines)).toBeLessThanOrEqual(1);
  });

  it('goes on between the single videos of an account that brings one after the other', async () => {
    const [importer, other] = [await seedAccount(db), await seedAccount(db)];
    await queueImport(importer, 200);
    let turns = 0;
    for (let round = 0; round < 12; round++) {
      await queueVideo(other);
      for (let isOver = false; !isOver;) {
        const task = await claim();
        if (task === null) throw new Error('nothing to claim');
        await end(task, 50);
        if (task.accountId === importer.accountId) turns += 1;
        else isOver = task.kind === 'assemble';
      }
    }
    // A quarter of its share is what an import is due; each single video lets one task pass at most.
    expect(turns).toBeGreaterThanOrEqual(6);
    expect(turns).toBeLessThanOrEqual(12);
  });
});

describe('jobs at once', () => {
  it('are never more than the plan allows, however many encoders of both classes claim [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueImport(account, 6);
    for (let round = 0; round < raceRounds; round++) {
      const jobs = (await claimAtOnce(round)).map((task) => task.jobId);
      expect([round, new Set(jobs).size, jobs.length]).toEqual([round, 2, 2]);
    }
  });
});

describe('a claim', () => {
  it.each([
    ['of one account', 1],
    ['of fifty accounts', 50],
  ])('reads as much with 10,000 queued videos %s as with a few', async (_what, accounts) => {
    for (let i = 0; i < accounts; i++) await queueImport(await seedAccount(db), 10_000 / accounts);
    await queueVideo(await seedAccount(db));
    await db.query('analyze encode_tasks, encode_jobs, encode_shares, accounts, plans');
    for (let i = 0; i < 20; i++) await claim();
    const { blocks, scanned } = await explainClaim();
    expect(scanned).not.toContain('encode_tasks');
    expect(scanned).not.toContain('encode_jobs');
    expect(blocks).toBeLessThan(40 * (accounts + 2));
  });
});
