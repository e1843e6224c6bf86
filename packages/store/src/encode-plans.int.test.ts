import { describe, expect, it } from '@jest/globals';
import { seedAccount } from '@millrace/testing';
import { attemptOf, createEncodeJob, failTask, finishPlan, moveVideo } from './index.ts';
import { db, mustClaim, one, queueVideo, somePlan, videoOf, useEncodeQueue } from './testing/encode-queue.ts';

useEncodeQueue();

describe('finishPlan', () => {
  it('fails a video that does not fit the upload limit, removes its original and charges nothing [VID-106, LIM-103]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    const first = await queueVideo(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    const second = await queueVideo(account);
    // The first job's two tasks, then the second's plan.
    await mustClaim();
    await mustClaim();
    expect(await finishPlan(db, await mustClaim(), somePlan(3_600_001))).toBe('over_limit');
    expect(await videoOf(second.videoId)).toEqual({ status: 'failed', failureCode: 'plan_limit_reached' });
    expect(await videoOf(first.videoId)).toMatchObject({ status: 'processing' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 14_400_000,
      upload: 14_400_000,
    });
    const { rows } = await db.query<{ videoId: string }>(
      `select video_id as "videoId" from object_prefixes where kind = 'source' and delete_after is not null`,
    );
    expect(rows).toEqual([{ videoId: second.videoId }]);
  });

  it('accepts exactly what is left of a limit [LIM-103]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueVideo(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    await queueVideo(account);
    await mustClaim();
    await mustClaim();
    expect(await finishPlan(db, await mustClaim(), somePlan(3_600_000))).toBe('done');
  });

  it('accepts a source as long as the plan takes, and none that is longer [LIM-102, VID-013]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await queueVideo(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(14_400_000))).toBe('done');
    const other = await seedAccount(db, { planId: 'free' });
    const { videoId } = await queueVideo(other);
    const task = await mustClaim();
    expect(task.accountId).toBe(other.accountId);
    expect(await finishPlan(db, task, somePlan(14_400_001))).toBe('over_limit');
    const { message } = await one<{ message: string }>(
      'select failure_message as message from videos where id = $1',
      [videoId],
    );
    expect(message).toMatch(/may be 14400 s long.+upload it again\.$/);
  });

  it('lets only as many of an account through at once as fit [LIM-104]', async () => {
    const account = await seedAccount(db, { planId: 'starter' });
    for (let i = 0; i < 4; i++) await queueVideo(account);
    const tasks = [await mustClaim(), await mustClaim(), await mustClaim(), await mustClaim()];
    await db.query(
      `insert into usage (account_id, period_start, period_end, upload_ms, updated_at)
       values ($1, date_trunc('month', now()), date_trunc('month', now()) + interval '1 month', 179800000, now())`,
      [account.accountId],
    );
    const outcomes = await Promise.all(tasks.map((task) => finishPlan(db, task, somePlan(60_000))));
    expect(outcomes.sort()).toEqual(['done', 'done', 'done', 'over_limit']);
    expect(await one('select upload_ms as upload from usage')).toEqual({ upload: 179_980_000 });
  });

  it('begins a new period by itself and does not charge an encode of the team again', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    await db.query(
      `insert into usage (account_id, period_start, period_end, upload_ms, watched_ms, stored_ms, updated_at)
       values ($1, '2020-01-01', '2020-02-01', 18000000, 5, 7, now())`,
      [account.accountId],
    );
    const { videoId } = await queueVideo(account);
    expect(await finishPlan(db, await mustClaim(), somePlan(1_000))).toBe('done');
    const usage = () =>
      one(
        'select upload_ms as upload, watched_ms as watched, stored_ms as stored, period_end > now() as current from usage',
      );
    expect(await usage()).toEqual({ upload: 1_000, watched: 0, stored: 1_007, current: true });

    const failure = { code: 'unsupported_codec', message: 'No decoder.' } as const;
    await failTask(db, attemptOf(await mustClaim()), { kind: 'source', failure, message: '' });
    // Charged again, it would not fit.
    await db.query('update usage set upload_ms = 18000000');
    await db.transaction(async (tx) => {
      await moveVideo(tx, videoId, { type: 'team_retry' });
      await createEncodeJob(tx, { videoId, accountId: account.accountId });
    });
    expect(await finishPlan(db, await mustClaim(), somePlan(1_000))).toBe('done');
    expect(await usage()).toEqual({ upload: 18_000_000, watched: 0, stored: 1_007, current: true });
  });

  it('answers done to a repeated finish and plans only once', async () => {
    await queueVideo(await seedAccount(db));
    const task = await mustClaim();
    expect(await finishPlan(db, task, somePlan())).toBe('done');
    expect(await finishPlan(db, task, somePlan())).toBe('done');
    expect(await one('select upload_ms as upload from usage')).toEqual({ upload: 60_000 });
  });
});
