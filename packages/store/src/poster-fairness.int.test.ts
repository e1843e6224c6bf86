import { describe, expect, it } from '@jest/globals';
import { seedAccount, type SeededAccount } from '@millrace/testing';
import { abandonAttempt, attemptOf, type ClaimedTask, failTask, heartbeatTask } from './index.ts';
import {
  claim,
  claimAtOnce,
  column,
  db,
  end,
  expireLease,
  mustClaim,
  one,
  queueImport,
  queueVideo,
  useEncodeQueue,
} from './testing/encode-queue.ts';
import { explainClaim } from './testing/explain.ts';
import { finishMade, queuePosters, remove, seedReadyVideo, wish } from './testing/posters.ts';

useEncodeQueue();

const endAny = (task: ClaimedTask): Promise<unknown> =>
  task.kind === 'poster' ? finishMade(task) : end(task, 50);

/** Encoders that work without a break; `ended` may bring new work after each task. */
function createMachines(
  slots: number,
  ended: (task: ClaimedTask) => Promise<unknown> = () => Promise.resolve(),
) {
  const running: ClaimedTask[] = [];
  const given: ClaimedTask[] = [];
  return {
    given,
    async fill() {
      while (running.length < slots) {
        const task = await claim();
        if (task === null) return;
        running.push(task);
        given.push(task);
      }
    },
    async step() {
      const task = running.shift();
      if (task === undefined) throw new Error('nothing runs');
      await endAny(task);
      await ended(task);
      await this.fill();
    },
  };
}

/** Tasks of others that were given out from now on, while one of the video waited, until it is ready. */
async function overtakings(
  machines: ReturnType<typeof createMachines>,
  { videoId, accountId }: { videoId: string; accountId: string },
): Promise<number> {
  let overtaken = 0;
  for (;;) {
    const { ready, waits } = await one<{ ready: boolean; waits: boolean }>(
      `select v.status = 'ready' as ready, exists (
         select from encode_tasks t where t.video_id = v.id and t.status = 'queued') as waits
       from videos v where v.id = $1`,
      [videoId],
    );
    if (ready) return overtaken;
    const before = machines.given.length;
    await machines.step();
    const others = machines.given.slice(before).filter((task) => task.accountId !== accountId);
    if (waits) overtaken += others.length;
  }
}

async function seedSingle(): Promise<SeededAccount & { videoId: string }> {
  const account = await seedAccount(db, { planId: 'free' });
  // It was given much lately, so that its share alone would make it wait.
  await db.query('insert into encode_shares (account_id, recent, at) values ($1, 100000, now())', [
    account.accountId,
  ]);
  return { ...account, ...(await queueVideo(account)) };
}

describe('a poster', () => {
  it('takes no place among the encode jobs of its account, which are as many as before [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    const videoId = await seedReadyVideo(account);
    await queueImport(account, 3);
    const [first] = [await mustClaim(), await mustClaim()];
    expect(await claim()).toBeNull();
    await wish(videoId, 7);
    expect((await mustClaim()).kind).toBe('poster');
    expect(await claim()).toBeNull();
    // Made beside them, it does not let another encode begin, nor keep one from beginning.
    const failure = { code: 'invalid_file', message: 'Corrupt.' } as const;
    await failTask(db, attemptOf(first), { kind: 'source', failure, message: 'corrupt' });
    expect((await mustClaim()).kind).toBe('plan');
    expect(await claim()).toBeNull();
  });

  it.each([
    ['of no more videos than may be encoded at once', 'agency'],
    ['of more', 'free'],
  ])('goes before what waits of its account’s import %s', async (_, planId) => {
    const account = await seedAccount(db, { planId });
    const videoId = await seedReadyVideo(account);
    for (let n = 0; n < 5; n++) await queueVideo(account);
    const machines = createMachines(1);
    await machines.fill();
    await machines.step();
    await wish(videoId, 7);
    await machines.step();
    expect(machines.given.at(-1)?.kind).toBe('poster');
  });

  it('goes after an urgent encode', async () => {
    const account = await seedAccount(db);
    await wish(await seedReadyVideo(account), 7);
    const { jobId } = await queueVideo(account);
    await db.query('update encode_tasks set priority = 10 where job_id = $1', [jobId]);
    expect((await mustClaim()).kind).toBe('plan');
  });

  it.each([1, 2])(
    'leaves the one video that its account encodes before imports, with %i slots [LIM-113]',
    async (slots) => {
      const importer = await seedAccount(db);
      await queueImport(importer, 200);
      const machines = createMachines(slots);
      await machines.fill();
      const single = await seedSingle();
      await wish(await seedReadyVideo(single), 7);
      expect(await overtakings(machines, single)).toBeLessThanOrEqual(1);
      expect(machines.given.map(({ kind }) => kind)).toContain('poster');
    },
  );
});

describe('posters of one account', () => {
  /** As each of the twelve claims is a rival of all others. */
  const rounds = 40;

  it('are made one at a time, however many encoders of both classes claim', async () => {
    const account = await seedAccount(db);
    await queuePosters(account, 6);
    for (let round = 0; round < rounds; round++) {
      expect([round, (await claimAtOnce(round)).length]).toEqual([round, 1]);
    }
  });

  it.each<[string, (task: ClaimedTask) => Promise<unknown>]>([
    ['has stopped', (task) => abandonAttempt(db, attemptOf(task))],
    ['has lost its lease', expireLease],
  ])('wait, when one is chosen anew or deleted while it is made, until its worker %s', async (_, stop) => {
    const account = await seedAccount(db);
    const [videoId, other] = [await seedReadyVideo(account), await seedReadyVideo(account)];
    await wish(videoId, 1);
    let task = await mustClaim();
    for (let moment = 2; moment <= 4; moment++) {
      await wish(videoId, moment);
      expect(await claim()).toBeNull();
      expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('cancelled');
      expect(await claim()).toBeNull();
      await stop(task);
      task = await mustClaim();
      expect(task.videoId).toBe(videoId);
    }
    await wish(other, 5);
    await remove(videoId);
    expect(await claim()).toBeNull();
    await stop(task);
    expect((await mustClaim()).videoId).toBe(other);
  });

  it.each([1, 2, 4])(
    'delay a single video of another by one at most, with %i slots [LIM-113]',
    async (slots) => {
      const looper = await seedAccount(db);
      const again = await seedReadyVideo(looper);
      await queuePosters(looper, 50);
      let moment = 0;
      const machines = createMachines(slots, () => wish(again, ++moment % 60));
      await machines.fill();
      expect(await overtakings(machines, await seedSingle())).toBeLessThanOrEqual(1);
    },
  );

  it.each([
    ['that take a second each', { seconds: 0, encodes: false, least: 10 }],
    ['that take a minute each', { seconds: 60, encodes: false, least: 40 }],
    ['beside its one video', { seconds: 0, encodes: true, least: 10 }],
  ])('%s, without end, leave an import of another its share', async (_, { seconds, encodes, least }) => {
    const [looper, importer] = [await seedAccount(db), await seedAccount(db, { planId: 'pro' })];
    if (encodes) {
      await queueVideo(looper);
      await mustClaim();
    }
    await queuePosters(looper, 100);
    await queueImport(importer, 12);
    for (let n = 0; n < 60; n++) {
      const task = await mustClaim();
      if (task.kind === 'poster') await backdate(task, seconds);
      await (task.kind === 'poster' ? finishMade(task) : end(task, 5));
    }
    const [ended] = await column(
      `select count(*)::integer as it from encode_tasks where account_id = $1 and status = 'done'`,
      [importer.accountId],
    );
    expect(ended).toBeGreaterThanOrEqual(least);
  });

  it.each<[string, (task: ClaimedTask) => Promise<unknown>]>([
    ['made', finishMade],
    ['not made', (task) => failTask(db, attemptOf(task), { kind: 'encoding', message: 'SIGSEGV' })],
    ['given up for another moment', (task) => wish(task.videoId, 9)],
  ])('count in its share by what they took, when they are %s', async (_, over) => {
    const account = await seedAccount(db);
    await wish(await seedReadyVideo(account), 7);
    const task = await mustClaim();
    await backdate(task, 300);
    await over(task);
    const { recent } = await one<{ recent: number }>('select recent from encode_shares');
    expect(recent).toBeGreaterThanOrEqual(300);
    expect(recent).toBeLessThan(400);
  });
});

const backdate = (task: ClaimedTask, seconds: number): Promise<unknown> =>
  db.query(`update encode_tasks set started_at = started_at - $2 * interval '1 s' where id = $1`, [
    task.id,
    seconds,
  ]);

describe('a claim', () => {
  it('reads as much with 10,000 posters and 10,000 videos of an account as with a few, whatever it may have', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queuePosters(account, 10_000);
    await queueImport(account, 10_000);
    await queueVideo(await seedAccount(db));
    await db.query('analyze encode_tasks, encode_jobs, encode_shares, accounts, plans');
    // Nothing of it runs; a poster does; encodes do too, as many as may.
    for (let n = 0; n < 5; n++) {
      const { blocks, scanned } = await explainClaim();
      expect(scanned).not.toContain('encode_tasks');
      expect(scanned).not.toContain('encode_jobs');
      expect(blocks).toBeLessThan(40 * 4);
      await claim();
    }
  });
});
