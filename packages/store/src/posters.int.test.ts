import { describe, expect, it } from '@jest/globals';
import { seedAccount, seedProcessingVideo } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  failTask,
  findEncodeJob,
  finishPoster,
  heartbeatTask,
  readPlaybackState,
  reapExpiredLeases,
} from './index.ts';
import { claim, column, db, expireLease, mustClaim, one, useEncodeQueue } from './testing/encode-queue.ts';
import {
  assembled,
  assembling,
  doomed,
  finishMade,
  jobsOf,
  make,
  openPrefix,
  playing,
  remove,
  reportOf,
  wish,
} from './testing/posters.ts';

useEncodeQueue();

describe('another moment for the poster', () => {
  it('of a video that plays is a job of its own, with the plan of the encode and a permit [VID-212]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    expect(await jobsOf(videoId)).toEqual(['running poster queued']);
    const permits = await column(`select value as it from outbox where topic = 'millrace.encode.tasks'`);
    const task = await mustClaim();
    expect(permits).toEqual([{ v: 1, taskId: task.id, kind: 'poster' }]);
    expect(await findEncodeJob(db, task.jobId)).toMatchObject({
      ...{ manifest: { v: 1 }, posterAtSeconds: 7 },
      indexKey: (await readPlaybackState(db, videoId))?.video?.indexKey,
    });
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('ok');
    expect(await reportOf(videoId)).toEqual({ state: 'running', atSeconds: 7 });
  });

  it('is none when it is the same, or when the encode has yet to make its poster [VID-213]', async () => {
    const { account, videoId } = await playing();
    await wish(videoId, null);
    await wish(videoId, 3);
    await finishMade(await mustClaim());
    await wish(videoId, 3);
    expect(await jobsOf(videoId)).toEqual(['succeeded poster done']);
    const encoding = await seedProcessingVideo(db, account);
    await wish(encoding, 3);
    expect(await column('select id as it from encode_jobs where video_id = $1', [encoding])).toEqual([]);
  });

  it('switches the index alone, and the CDN hears of it; nothing else changes [VID-212]', async () => {
    const { videoId, replaced } = await playing();
    const fixed = `status, title, qualities, duration_ms, ready_at, current_job_id, source_key, size_bytes`;
    const row = () => one(`select ${fixed} from videos where id = $1`, [videoId]);
    const moving = () =>
      one<{ version: number; updatedAt: Date }>(
        `select version, updated_at as "updatedAt" from videos where id = $1`,
        [videoId],
      );
    const usage = () => one('select stored_ms, upload_ms from usage');
    await wish(videoId, 7);
    const task = await mustClaim();
    await db.query('delete from outbox');
    const [before, wasMoving, wasUsage] = [await row(), await moving(), await usage()];
    const poster = await make(task, replaced);
    expect(await finishPoster(db, task, poster)).toBe('done');
    expect(await row()).toEqual(before);
    expect(await usage()).toEqual(wasUsage);
    const { version, updatedAt } = await moving();
    expect([version, updatedAt > wasMoving.updatedAt]).toEqual([wasMoving.version + 1, true]);
    const state = (await readPlaybackState(db, videoId))?.video;
    expect(state).toMatchObject({ status: 'ready', indexKey: poster.indexKey, version });
    expect(await column(`select value as it from outbox`)).toEqual([{ v: 1, kind: 'video', state }]);
    expect(await column(`select type as it from events`)).toEqual(['video.ready']);
    expect(await jobsOf(videoId)).toEqual(['succeeded poster done']);
    expect(await reportOf(videoId)).toEqual({ state: 'succeeded', atSeconds: 7, seconds: 1 });

    // Its answer may be lost: told again, it is done, and its objects stay.
    expect(await finishPoster(db, task, poster)).toBe('done');
    expect(await moving()).toEqual({ version, updatedAt });
    expect(await abandonAttempt(db, attemptOf(task))).toBeNull();
  });

  it('leaves what it replaces to the sweep when no backup names it any more, and its lost attempts at once', async () => {
    const { videoId, replaced } = await playing();
    await wish(videoId, 7);
    const lost = await mustClaim();
    const lostPrefix = await openPrefix(lost);
    await expireLease(lost);
    expect(await reapExpiredLeases(db)).toBe(1);
    const task = await mustClaim();
    expect(task).toMatchObject({ id: lost.id, losses: 1 });
    expect(await finishPoster(db, lost, await make(lost))).toBe('lost');
    expect(await finishMade(task, replaced)).toBe('done');
    expect(await doomed()).toEqual([lostPrefix]);
    const later = await column(
      `select prefix as it from object_prefixes where delete_after between
         clock_timestamp() + interval '34 days' and clock_timestamp() + interval '35 days' order by prefix`,
    );
    expect(later).toEqual(replaced);
    expect(await column('select kind as it from object_prefixes where delete_after is null')).toEqual(
      expect.arrayContaining(['source', 'attempt']),
    );
    // Nobody wants them without the video.
    await remove(videoId);
    expect(await doomed()).toEqual(await column('select prefix as it from object_prefixes order by 1'));
  });

  it('counts when it is chosen again: what has not begun takes it, with all its tries [VID-213]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    const first = await mustClaim();
    await failTask(db, attemptOf(first), { kind: 'encoding', message: 'SIGSEGV' });
    expect(await claim()).toBeNull();
    await wish(videoId, 8);
    const task = await mustClaim();
    expect(task).toMatchObject({ id: first.id, jobId: first.jobId, failures: 0, fence: 2 });
    expect((await findEncodeJob(db, task.jobId))?.posterAtSeconds).toBe(8);
    expect(await jobsOf(videoId)).toEqual(['running poster processing']);
  });

  it('takes the place of one that is being made, whose result is thrown away [VID-213]', async () => {
    const { videoId, replaced } = await playing();
    const { indexKey } = await one<{ indexKey: string }>('select index_key as "indexKey" from videos');
    await wish(videoId, 7);
    const first = await mustClaim();
    const made = await make(first, replaced);
    await wish(videoId, 8);
    expect(await heartbeatTask(db, attemptOf(first), 60_000)).toBe('cancelled');
    expect(await finishPoster(db, first, made)).toBe('lost');
    expect(await failTask(db, attemptOf(first), { kind: 'encoding', message: 'late' })).toEqual({
      kind: 'lost',
    });
    expect(await doomed()).toEqual([made.prefix]);
    expect(await abandonAttempt(db, attemptOf(first))).toBe(made.prefix);
    expect((await readPlaybackState(db, videoId))?.video?.indexKey).toBe(indexKey);
    const second = await mustClaim();
    expect(second.jobId).not.toBe(first.jobId);
    expect(await finishMade(second, replaced)).toBe('done');
    expect(await jobsOf(videoId)).toEqual(['cancelled poster cancelled', 'succeeded poster done']);
    expect(await reportOf(videoId)).toMatchObject({ state: 'succeeded', atSeconds: 8 });
  });
});

describe('a moment that is chosen while the video is encoded', () => {
  it.each<[string, number | null | undefined, string[]]>([
    ['is a job after it when the encode’s pictures were made before', null, ['running poster queued']],
    ['is none when they were made by it', 5, []],
    ['is none when that is not known', undefined, []],
  ])('%s [VID-212]', async (_, madeFor, jobs) => {
    const { videoId, assemble } = await assembling(await seedAccount(db));
    await wish(videoId, 5);
    expect(await jobsOf(videoId)).toEqual([]);
    await assembled(assemble, madeFor);
    expect(await jobsOf(videoId)).toEqual(jobs);
    expect((await readPlaybackState(db, videoId))?.video?.status).toBe('ready');
  });
});
