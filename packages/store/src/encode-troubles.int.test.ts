import { describe, expect, it } from '@jest/globals';
import { seedAccount } from '@millrace/testing';
import {
  abandonAttempt,
  attemptOf,
  type ClaimedTask,
  claimTask,
  failTask,
  heartbeatTask,
  openAttemptPrefix,
  reapExpiredLeases,
  releaseTask,
} from './index.ts';
import {
  claim,
  column,
  db,
  expireLease,
  finish,
  mustClaim,
  one,
  plannedJob,
  queueVideo,
  videoOf,
  useEncodeQueue,
} from './testing/encode-queue.ts';

useEncodeQueue();

describe('leases and fences', () => {
  it('refuses heartbeat, finish and failure of a holder whose task was claimed again', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const old = tasks[0];
    expect(await heartbeatTask(db, attemptOf(old), 60_000)).toBe('ok');
    await expireLease(old);
    expect(await reapExpiredLeases(db)).toBe(1);
    const fresh = await mustClaim();
    expect(fresh).toMatchObject({ id: old.id, fence: old.fence + 1, losses: 1, failures: 0 });

    expect(await heartbeatTask(db, attemptOf(old), 60_000)).toBe('lost');
    expect(await finish(old)).toBe('lost');
    expect(await failTask(db, attemptOf(old), { kind: 'encoding', message: 'late' })).toEqual({
      kind: 'lost',
    });
    expect(await openAttemptPrefix(db, attemptOf(old))).toBeNull();
    expect(await finish(fresh)).toBe('done');
    expect(await one('select fence from task_outputs where task_id = $1', [old.id])).toEqual({
      fence: fresh.fence,
    });
  });

  it('takes every task that was lost, behind any that cannot be taken', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const lost = [...tasks, (await plannedJob(await seedAccount(db))).tasks[0]].sort((a, b) =>
      a.id < b.id ? -1 : 1,
    );
    for (const task of lost) await expireLease(task);
    const poison = lost[0];
    await db.query(`update encode_tasks set last_error = '{"waits": "some"}' where id = $1`, [poison?.id]);
    await expect(reapExpiredLeases(db, { limit: 1 })).rejects.toMatchObject({ message: '1 were left' });
    expect(await column(`select id as it from encode_tasks where losses = 1 order by id`)).toEqual(
      lost.slice(1).map(({ id }) => id),
    );
  });

  it('does not take a task whose worker renewed its lease', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    await expireLease(tasks[0]);
    await heartbeatTask(db, attemptOf(tasks[0]), 60_000);
    expect(await reapExpiredLeases(db)).toBe(0);
    expect(await finish(tasks[0])).toBe('done');
  });

  it('answers a repeated finish of the winner with done, and keeps its objects', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const prefix = await openAttemptPrefix(db, attemptOf(tasks[0]));
    expect(await finish(tasks[0], prefix ?? '')).toBe('done');
    expect(await finish(tasks[0], prefix ?? '')).toBe('done');
    expect(await one('select remaining from encode_jobs')).toEqual({ remaining: 1 });
    expect(await abandonAttempt(db, attemptOf(tasks[0]))).toBeNull();
  });

  it('hands a released task to the next worker without counting a loss', async () => {
    await queueVideo(await seedAccount(db));
    const task = await mustClaim();
    await releaseTask(db, task);
    expect(await mustClaim()).toMatchObject({ id: task.id, fence: task.fence + 1, losses: 0, failures: 0 });
  });

  it('moves a task to the large class after three losses and fails the video after three more [ENC-018]', async () => {
    const { videoId } = await queueVideo(await seedAccount(db));
    const classes: string[] = [];
    for (;;) {
      const task = (await claim()) ?? (await claimTask(db, { worker: 'w', class: 'large', leaseMs: 1000 }));
      if (task === null) break;
      classes.push(task.class);
      await expireLease(task);
      await reapExpiredLeases(db);
    }
    expect(classes).toEqual(['standard', 'standard', 'standard', 'large', 'large', 'large']);
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
  });
});

describe('failTask', () => {
  it('fails the video at once for bad input, with its code, one event and no open work [VID-105]', async () => {
    const { videoId, tasks } = await plannedJob(await seedAccount(db));
    const failure = { code: 'unsupported_codec', message: 'No decoder.' } as const;
    expect(
      await failTask(db, attemptOf(tasks[0]), { kind: 'source', failure, message: 'no decoder' }),
    ).toEqual({ kind: 'failed' });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'unsupported_codec' });
    expect(await one('select count(*) from events')).toEqual({ count: 1 });
    expect(await heartbeatTask(db, attemptOf(tasks[1]), 60_000)).toBe('cancelled');
    expect(await one(`select state, report from encode_jobs`)).toEqual({
      state: 'failed',
      report: { planned: true, failure: { ...failure, task: 'video' } },
    });
    expect(await one(`select headers from outbox where topic = 'millrace.video.events'`)).toEqual({
      headers: { traceparent: '00-a' },
    });
    expect(await claim()).toBeNull();
  });

  it('retries what ffmpeg did with a wait, and gives upload seconds back when it gives up [LIM-105, ENC-018]', async () => {
    const account = await seedAccount(db);
    const { videoId, tasks } = await plannedJob(account);
    const usage = () =>
      one<object>('select stored_ms as stored, upload_ms as upload from usage where account_id = $1', [
        account.accountId,
      ]);
    expect(await usage()).toEqual({ stored: 60_000, upload: 60_000 });
    let task = tasks[0];
    for (const afterMs of [5_000, 30_000]) {
      const outcome = await failTask(db, attemptOf(task), { kind: 'encoding', message: 'SIGSEGV' });
      expect(outcome).toEqual({ kind: 'retry', afterMs });
      expect(await claim()).toBeNull();
      await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
      task = await mustClaim();
    }
    expect(await failTask(db, attemptOf(task), { kind: 'encoding', message: 'SIGSEGV' })).toEqual({
      kind: 'failed',
    });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
    expect(await usage()).toEqual({ stored: 0, upload: 0 });
  });

  it('gives up an outage of ours after a day, gives upload seconds back, and never before [ENC-018]', async () => {
    const account = await seedAccount(db);
    const { videoId, tasks } = await plannedJob(account);
    const outage = { kind: 'infrastructure', message: 'no store' } as const;
    const due = async (seconds: number): Promise<ClaimedTask> => {
      await db.query(
        `update encode_tasks set run_after = now(),
           last_error = jsonb_set(last_error, '{waitingSince}', to_jsonb(now() - $2 * interval '1 s'))
         where id = $1`,
        [tasks[0].id, seconds],
      );
      return mustClaim();
    };
    let task = tasks[0];
    for (let tries = 0; tries < 20; tries++) {
      expect(await failTask(db, attemptOf(task), outage)).toMatchObject({ kind: 'retry' });
      task = await due(24 * 3_600 - 60);
    }
    // The outage's beginning stays what it was.
    const { rows } = await db.query<{ hours: number }>(
      `select round(extract(epoch from now() - (last_error->>'waitingSince')::timestamptz) / 3600)::integer as hours
       from encode_tasks where id = $1`,
      [task.id],
    );
    expect(rows).toEqual([{ hours: 24 }]);
    expect(await failTask(db, attemptOf(task), outage)).toMatchObject({ kind: 'retry' });
    task = await due(24 * 3_600);
    expect(await failTask(db, attemptOf(task), outage)).toEqual({ kind: 'failed' });
    expect(await videoOf(videoId)).toEqual({ status: 'failed', failureCode: 'encoding_failed' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 0,
      upload: 0,
    });
  });

  it('counts an outage anew when the task met something else between', async () => {
    const { tasks } = await plannedJob(await seedAccount(db));
    const trouble = async (kind: 'infrastructure' | 'room', task: ClaimedTask): Promise<ClaimedTask> => {
      await failTask(db, attemptOf(task), { kind, message: '' });
      await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
      return mustClaim();
    };
    const since = () =>
      one<{ waits: number; since: string | null }>(
        `select (last_error->>'waits')::integer as waits, last_error->>'waitingSince' as since
         from encode_tasks where id = $1`,
        [tasks[0].id],
      );
    let task = await trouble('infrastructure', tasks[0]);
    const first = await since();
    task = await trouble('infrastructure', task);
    expect(await since()).toEqual({ waits: 2, since: first.since });
    task = await trouble('room', task);
    expect(await since()).toEqual({ waits: 0, since: null });
    await trouble('infrastructure', task);
    expect((await since()).since).not.toBe(first.since);
  });

  it('charges upload seconds for a file that is to blame, and does not count our own outages [LIM-105]', async () => {
    const account = await seedAccount(db);
    const { tasks } = await plannedJob(account);
    const task = tasks[0];
    await failTask(db, attemptOf(task), { kind: 'infrastructure', message: 'no store' });
    await db.query('update encode_tasks set run_after = now() where id = $1', [task.id]);
    const again = await mustClaim();
    expect(again).toMatchObject({ id: task.id, failures: 0, losses: 0 });
    expect(await failTask(db, attemptOf(again), { kind: 'infrastructure', message: 'still' })).toEqual({
      kind: 'retry',
      afterMs: 2_000,
    });
    const failure = { code: 'invalid_file', message: 'Corrupt.' } as const;
    await failTask(db, attemptOf(tasks[1]), { kind: 'source', failure, message: 'corrupt' });
    expect(await one('select stored_ms as stored, upload_ms as upload from usage')).toEqual({
      stored: 0,
      upload: 60_000,
    });
  });
});
