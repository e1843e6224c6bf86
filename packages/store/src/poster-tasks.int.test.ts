import { describe, expect, it } from '@jest/globals';
import {
  abandonAttempt,
  attemptOf,
  createHoldCommands,
  doomedPrefixes,
  failTask,
  finishPoster,
  heartbeatTask,
  openAttemptPrefix,
  pauseEncoding,
  readPlaybackState,
  reapExpiredLeases,
  repairJobs,
  republishQueued,
  resumeEncoding,
} from './index.ts';
import { claim, column, db, expireLease, mustClaim, one, useEncodeQueue } from './testing/encode-queue.ts';
import {
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

describe('a poster that cannot be made', () => {
  const failure = { code: 'invalid_file', message: 'No picture.' } as const;

  it('leaves the video as it is, the report says why, and the same moment is tried again [VID-214]', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    const video = () => one('select * from videos');
    const before = await video();
    const task = await mustClaim();
    const prefix = await openPrefix(task);
    expect(await failTask(db, attemptOf(task), { kind: 'source', failure, message: 'none' })).toEqual({
      kind: 'failed',
    });
    expect(await video()).toEqual(before);
    expect(await doomed()).toEqual([prefix]);
    expect(await column('select type as it from events')).toEqual(['video.ready']);
    expect(await reportOf(videoId)).toEqual({
      ...{ state: 'failed', atSeconds: 7, failure: { ...failure, task: 'poster' } },
    });
    await wish(videoId, 7);
    expect(await jobsOf(videoId)).toEqual(['failed poster failed', 'running poster queued']);
  });

  it.each([
    ['ffmpeg fails', 'encoding', 3],
    ['its workers are lost', 'lost', 6],
  ] as const)('is given up when %s again and again [VID-214, ENC-018]', async (_, kind, tries) => {
    const { videoId } = await playing();
    const before = await one('select stored_ms, upload_ms from usage');
    await wish(videoId, 7);
    let failed = 0;
    for (;;) {
      const task = (await claim()) ?? (await claim('large'));
      if (task === null) break;
      failed += 1;
      await openPrefix(task);
      if (kind === 'encoding') await failTask(db, attemptOf(task), { kind, message: 'SIGSEGV' });
      else {
        await expireLease(task);
        await reapExpiredLeases(db);
      }
      await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
    }
    expect(failed).toBe(tries);
    expect((await readPlaybackState(db, videoId))?.video?.status).toBe('ready');
    expect(await one('select stored_ms, upload_ms from usage')).toEqual(before);
    expect(await doomed()).toHaveLength(tries);
    expect(await reportOf(videoId)).toMatchObject({
      ...{ state: 'failed', failure: { code: 'encoding_failed', task: 'poster' } },
    });
    expect(JSON.stringify(await reportOf(videoId))).toContain('stays as it was');
  });
});

describe('while a poster is made', () => {
  it('deleting the video ends that, and nothing of it is kept [VID-117]', async () => {
    const { videoId, replaced } = await playing();
    await wish(videoId, 7);
    const task = await mustClaim();
    const made = await make(task, replaced);
    await remove(videoId);
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('cancelled');
    expect(await finishPoster(db, task, made)).toBe('lost');
    expect(await failTask(db, attemptOf(task), { kind: 'encoding', message: 'x' })).toEqual({ kind: 'lost' });
    expect(await openAttemptPrefix(db, attemptOf(task))).toBeNull();
    expect(await column('select prefix as it from object_prefixes where delete_after is null')).toEqual([]);
    expect(await jobsOf(videoId)).toEqual(['cancelled poster cancelled']);
  });

  it('a hold stops playing, not that: the video is held with its new poster, and then plays with it', async () => {
    const { videoId, replaced } = await playing();
    const holds = createHoldCommands(db);
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    await wish(videoId, 7);
    const task = await mustClaim();
    await holds.place({ ...hold, reason: null, legal: false }, 'admin');
    expect(await heartbeatTask(db, attemptOf(task), 60_000)).toBe('ok');
    const poster = await make(task, replaced);
    expect(await finishPoster(db, task, poster)).toBe('done');
    const state = async () => (await readPlaybackState(db, videoId))?.video;
    expect(await state()).toMatchObject({ status: 'held', indexKey: poster.indexKey });
    await wish(videoId, 9);
    expect(await finishMade(await mustClaim(), [poster.prefix])).toBe('done');
    await holds.lift(hold, 'admin');
    expect((await state())?.status).toBe('ready');
  });

  it('what a legal hold keeps stays, replaced or not, until that is lifted [HLD-009]', async () => {
    const { videoId, replaced } = await playing();
    const holds = createHoldCommands(db);
    const hold = { videoId, source: 'admin', reference: 'admin' } as const;
    const going = async (): Promise<string[]> => {
      await db.query(`update object_prefixes set delete_after = delete_after - interval '36 days'`);
      return (await doomedPrefixes(db, 100)).map(({ prefix }) => prefix).sort();
    };
    await wish(videoId, 7);
    expect(await finishMade(await mustClaim(), replaced)).toBe('done');
    // Before they go.
    await holds.place({ ...hold, reason: null, legal: true }, 'admin');
    expect(await going()).toEqual([]);
    await holds.lift(hold, 'admin');
    expect(await going()).toEqual(replaced);

    await holds.place({ ...hold, reason: null, legal: true }, 'admin');
    await wish(videoId, 8);
    const lost = await mustClaim();
    await openPrefix(lost);
    await remove(videoId);
    expect(await abandonAttempt(db, attemptOf(lost))).toBeNull();
    expect(await going()).toEqual([]);
    await holds.lift(hold, 'admin');
    expect(await going()).toEqual(await column('select prefix as it from object_prefixes order by 1'));
  });
});

describe('the task of a poster', () => {
  it('waits for the end of a pause', async () => {
    const { account, videoId } = await playing();
    await wish(videoId, 7);
    const pause = { scope: 'account', accountId: account.accountId } as const;
    await db.transaction((tx) => pauseEncoding(tx, { pause, reason: null, actor: 'admin' }));
    expect(await claim()).toBeNull();
    await db.transaction((tx) => resumeEncoding(tx, { pause, actor: 'admin' }));
    expect((await mustClaim()).kind).toBe('poster');
  });

  it('is left alone by the repair of jobs, and gets another permit when it waits for long', async () => {
    const { videoId } = await playing();
    await wish(videoId, 7);
    expect(await repairJobs(db)).toBe(0);
    await db.query('delete from outbox');
    await db.query(`update encode_tasks set run_after = now() - interval '1 h' where kind = 'poster'`);
    expect(await republishQueued(db, { olderThanMs: 60_000, limit: 10 })).toBe(1);
    expect(await column(`select value ->> 'kind' as it from outbox`)).toEqual(['poster']);
    await mustClaim();
    expect(await repairJobs(db)).toBe(0);
    expect(await jobsOf(videoId)).toEqual(['running poster processing']);
  });
});
