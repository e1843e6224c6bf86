import { beforeEach, describe, expect, it } from '@jest/globals';
import { seedAccount, type SeededAccount, waitFor } from '@millrace/testing';
import {
  type ClaimedTask,
  type Database,
  type EncodePauseScope,
  finishPlan,
  listEncodePauses,
  pauseEncoding,
  republishQueued,
  resumeEncoding,
} from './index.ts';
import { claim, db, queueVideo, useEncodeQueue } from './testing/encode-queue.ts';

let [one, two]: SeededAccount[] = [];

useEncodeQueue();
beforeEach(async () => {
  [one, two] = [await seedAccount(db), await seedAccount(db)];
});

const accountOf = (account: SeededAccount | undefined): string => account?.accountId ?? '';
const pause = (what: EncodePauseScope, { reason = null as string | null, actor = 'team' } = {}) =>
  db.transaction((tx) => pauseEncoding(tx, { pause: what, reason, actor }));
const resume = (what: EncodePauseScope): Promise<void> =>
  db.transaction((tx) => resumeEncoding(tx, { pause: what, actor: 'team' }));

async function queue(account = one, taskClass: 'standard' | 'large' = 'standard'): Promise<string> {
  const { videoId } = await queueVideo(account as SeededAccount);
  await db.query('update encode_tasks set class = $2 where video_id = $1', [videoId, taskClass]);
  return videoId;
}
/** Videos whose tasks encoders were told of, since the last look. */
async function told(): Promise<string[]> {
  const { rows } = await db.query<{ videoId: string }>(
    `with gone as (delete from outbox where topic = 'millrace.encode.tasks' returning key)
     select t.video_id as "videoId" from gone join encode_tasks t on t.id = gone.key`,
  );
  return rows.map((row) => row.videoId).sort();
}

describe('a pause', () => {
  it('of an account holds back that one alone', async () => {
    await queue(one);
    await pause({ scope: 'account', accountId: accountOf(one) });
    expect(await claim()).toBeNull();
    await queue(two);
    expect((await claim())?.accountId).toBe(accountOf(two));
    await resume({ scope: 'account', accountId: accountOf(one) });
    expect((await claim())?.accountId).toBe(accountOf(one));
  });

  it('of a class holds back that one alone', async () => {
    const [standard, large] = [await queue(one, 'standard'), await queue(one, 'large')];
    await pause({ scope: 'class', class: 'large' });
    expect(await claim('large')).toBeNull();
    expect((await claim('standard'))?.videoId).toBe(standard);
    await resume({ scope: 'class', class: 'large' });
    expect((await claim('large'))?.videoId).toBe(large);
  });

  it('of everything holds back everything, and lifting another pause changes nothing of that', async () => {
    await queue(one, 'standard');
    await queue(two, 'large');
    await pause({ scope: 'all' });
    await pause({ scope: 'class', class: 'large' });
    await resume({ scope: 'class', class: 'large' });
    expect([await claim('standard'), await claim('large')]).toEqual([null, null]);
    await resume({ scope: 'all' });
    expect([await claim('standard'), await claim('large')]).not.toContain(null);
  });

  it('lets what runs end, and holds back what comes after it [ADM-210]', async () => {
    await queue(one);
    const plan = (await claim()) as ClaimedTask;
    await pause({ scope: 'account', accountId: accountOf(one) });
    const tasks = [{ kind: 'video' as const, index: 0, cost: 1 }];
    const planned = { manifest: {}, plannerVersion: 1, durationMs: 1_000, tasks, report: {} };
    expect(await finishPlan(db, plan, planned)).toBe('done');
    expect(await claim()).toBeNull();
    await resume({ scope: 'account', accountId: accountOf(one) });
    expect((await claim())?.kind).toBe('video');
  });

  it('is made when no claim is under way any more that has not seen it', async () => {
    await queue(one);
    const [picked, go] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const slow: Database = {
      ...db,
      transaction: (work) =>
        db.transaction(async (tx) => {
          const result = await work(tx);
          picked.resolve(undefined);
          await go.promise;
          return result;
        }),
    };
    const claiming = claim('standard', slow);
    await picked.promise;
    let isMade = false;
    const pausing = pause({ scope: 'all' }).then(() => (isMade = true));
    await waitFor(async () => {
      const { rowCount } = await db.query(
        `select from pg_locks l join pg_database d on d.oid = l.database
         where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`,
      );
      return rowCount === 1;
    });
    expect(isMade).toBe(false);
    go.resolve(undefined);
    await pausing;
    expect(await claiming).not.toBeNull();
    await queue(two);
    expect(await claim()).toBeNull();
  });

  it('says who made it and why, as the audit log does', async () => {
    await pause({ scope: 'all' }, { reason: 'Disk is full', actor: 'someone@example.com' });
    await pause({ scope: 'account', accountId: accountOf(one) }, { actor: 'operator' });
    await pause({ scope: 'account', accountId: accountOf(one) }, { reason: 'Abuse', actor: 'admin' });
    expect(await listEncodePauses(db)).toEqual([
      expect.objectContaining({
        ...{ scope: 'all', subject: null, reason: 'Disk is full', pausedBy: 'someone@example.com' },
      }),
      expect.objectContaining({
        ...{ scope: 'account', subject: accountOf(one), reason: 'Abuse', pausedBy: 'admin' },
      }),
    ]);
    await resume({ scope: 'all' });
    const { rows } = await db.query<{ line: string }>(
      `select concat_ws(' ', actor, action, subject, details ->> 'reason') as line from audit order by at, id`,
    );
    expect(rows.map((row) => row.line)).toEqual([
      'someone@example.com encoding.pause all Disk is full',
      `operator encoding.pause ${accountOf(one)}`,
      `admin encoding.pause ${accountOf(one)} Abuse`,
      'team encoding.resume all',
    ]);
  });

  it('is refused for an account that is not there', async () => {
    await expect(pause({ scope: 'account', accountId: 'acc_unknown' })).rejects.toMatchObject({
      code: 'not_found',
    });
    expect(await listEncodePauses(db)).toEqual([]);
  });
});

describe('the end of a pause', () => {
  it('tells encoders at once of what waited, and of nothing that still has to wait', async () => {
    const [first, second, later, paused] = [
      await queue(one),
      await queue(two),
      await queue(one),
      await queue(one, 'large'),
    ];
    await db.query(`update encode_tasks set run_after = now() + interval '1 h' where video_id = $1`, [later]);
    await pause({ scope: 'all' });
    await pause({ scope: 'class', class: 'large' });
    await told();
    await resume({ scope: 'all' });
    expect(await told()).toEqual([first, second].sort());
    await resume({ scope: 'class', class: 'large' });
    expect(await told()).toEqual([paused]);
  });

  it('of an account tells of that one alone; without a pause of nothing', async () => {
    const [mine] = [await queue(one), await queue(two)];
    await pause({ scope: 'account', accountId: accountOf(one) });
    await told();
    await resume({ scope: 'account', accountId: accountOf(two) });
    expect(await told()).toEqual([]);
    await resume({ scope: 'account', accountId: accountOf(one) });
    expect(await told()).toEqual([mine]);
  });

  it('leaves nothing to tell while it lasts', async () => {
    const [, other] = [await queue(one), await queue(two)];
    await pause({ scope: 'account', accountId: accountOf(one) });
    await told();
    expect(await republishQueued(db, { olderThanMs: 0, limit: 10 })).toBe(1);
    expect(await told()).toEqual([other]);
  });
});
