import { beforeEach, describe, expect, it } from '@jest/globals';
import { race, raceRounds, seedAccount, type SeededAccount } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  findEncodeJob,
  finishPoster,
  heartbeatTask,
  openAttemptPrefix,
} from './index.ts';
import { claim, column, db, mustClaim, one, useEncodeQueue } from './testing/encode-queue.ts';
import { remove, seedReadyVideo, wish } from './testing/posters.ts';

let account: SeededAccount;

useEncodeQueue();
beforeEach(async () => {
  account = await seedAccount(db);
});

/** Makes a poster of the moment that the job asks for, which the index's key names. */
async function make(task: ClaimedTask): Promise<string> {
  const job = await findEncodeJob(db, task.jobId);
  const prefix = await openAttemptPrefix(db, attemptOf(task));
  if (job === null || prefix === null) return giveUp(task);
  await heartbeatTask(db, attemptOf(task), 60_000);
  const replaced = [(job.indexKey ?? '').replace(/[^/]*$/, '')];
  const indexKey = `${prefix}${job.posterAtSeconds}`;
  const outcome = await finishPoster(db, task, { prefix, indexKey, replaced, output: {}, report: {} });
  return outcome === 'done' ? outcome : giveUp(task);
}
/** As every worker does in the end whose result is not wanted. */
async function giveUp(task: ClaimedTask): Promise<'lost'> {
  await abandonAttempt(db, attemptOf(task));
  return 'lost';
}
async function work(): Promise<string> {
  const task = await claim();
  return task === null ? 'idle' : make(task);
}

interface Left {
  deleted: boolean;
  wish: number;
  shown: string;
  running: number;
  open: number;
  /** Prefixes of attempts that stay. */
  kept: string[];
}
const left = (videoId: string): Promise<Left> =>
  one<Left>(
    `select v.deleted_at is not null as deleted, v.poster_at_seconds as wish, v.index_key as shown,
       (select count(*) from encode_jobs j where j.video_id = v.id and j.state = 'running') as running,
       (select count(*) from encode_tasks t where t.video_id = v.id and t.status in ('queued', 'processing')) as open,
       (select coalesce(array_agg(p.prefix), '{}') from object_prefixes p
        where p.video_id = v.id and p.kind = 'attempt' and p.delete_after is null) as kept
     from videos v where v.id = $1`,
    [videoId],
  );

/** Two choose at once, while one poster is being made and another worker looks; then all is done that is to do. */
async function round(others: readonly ((videoId: string) => Promise<unknown>)[]): Promise<Left> {
  const videoId = await seedReadyVideo(account);
  await wish(videoId, 1);
  const first = await mustClaim();
  await race([
    () => make(first),
    () => wish(videoId, 2),
    () => wish(videoId, 3),
    work,
    ...others.map((other) => () => other(videoId)),
  ]);
  const meanwhile = await left(videoId);
  expect(meanwhile.open).toBe(meanwhile.running);
  expect(meanwhile.running).toBeLessThanOrEqual(1);
  while ((await work()) !== 'idle');
  return left(videoId);
}

describe('a poster that is chosen by two, made and looked for at once, 200 times', () => {
  it('is in the end of the last moment chosen, made once, with nothing else left [VID-213]', async () => {
    for (let n = 0; n < raceRounds; n++) {
      const end = await round([]);
      expect(end).toMatchObject({ deleted: false, running: 0, open: 0 });
      expect([2, 3]).toContain(end.wish);
      expect(end.shown).toBe(`${end.kept[0] ?? ''}${end.wish}`);
      expect(end.kept).toHaveLength(1);
    }
  });

  it('ends with its video when that is deleted too [VID-117]', async () => {
    for (let n = 0; n < raceRounds; n++) {
      expect(await round([remove])).toMatchObject({ deleted: true, running: 0, open: 0, kept: [] });
    }
    // Locks are taken in one order everywhere: video, job, task. Rivals wait; none is a victim.
    await db.query('select pg_stat_force_next_flush()');
    expect(
      await column('select deadlocks as it from pg_stat_database where datname = current_database()'),
    ).toEqual([0]);
  });
});
