import { describe, expect, it } from '@jest/globals';
import { seedAccount } from '@millrace/testing';
import { type ClaimedTask, claimTask, finishPlan } from './index.ts';
import {
  claim,
  db,
  finish,
  mustClaim,
  one,
  queueVideo,
  somePlan,
  useEncodeQueue,
} from './testing/encode-queue.ts';

useEncodeQueue();

describe('createEncodeJob', () => {
  it('makes a job with one plan task and a permit that carries the trace', async () => {
    const { jobId, videoId } = await queueVideo(await seedAccount(db));
    const permit = await one<{ key: string; value: { taskId: string; kind: string }; headers: object }>(
      `select key, value, headers from outbox where topic = 'millrace.encode.tasks'`,
    );
    const task = await mustClaim();
    expect(task).toMatchObject({ kind: 'plan', jobId, videoId, fence: 1 });
    expect(permit).toEqual({
      key: task.id,
      value: { v: 1, taskId: task.id, kind: 'plan' },
      headers: { traceparent: '00-a' },
    });
    expect(await claim()).toBeNull();
  });
});

describe('claimTask', () => {
  it('gives each task to one worker only, however many claim at once', async () => {
    const account = await seedAccount(db);
    for (let i = 0; i < 20; i++) await queueVideo(account);
    const claims = await Promise.all(Array.from({ length: 40 }, () => claim()));
    const ids = claims.flatMap((task) => (task === null ? [] : [task.id]));
    expect(ids.length).toBe(20);
    expect(new Set(ids).size).toBe(20);
  });

  it('never runs more jobs of an account at once than its plan allows, though its running jobs go on [LIM-112]', async () => {
    const account = await seedAccount(db, { planId: 'free' });
    for (let i = 0; i < 5; i++) await queueVideo(account);
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim()));
    const running = claims.filter((task) => task !== null);
    expect(running.length).toBe(2);

    // A job that is running already may use more slots.
    await finishPlan(db, running[0] as ClaimedTask, somePlan());
    const more = [await mustClaim(), await mustClaim()];
    expect(more.map((task) => [task.jobId, task.kind])).toEqual([
      [running[0]?.jobId, 'video'],
      [running[0]?.jobId, 'audio'],
    ]);
    expect(await claim()).toBeNull();
  });

  it('finishes jobs that were begun before it begins later ones of the same account', async () => {
    const account = await seedAccount(db);
    const first = await queueVideo(account);
    await queueVideo(account);
    await finishPlan(db, await mustClaim(), somePlan());
    expect((await mustClaim()).jobId).toBe(first.jobId);
    expect((await mustClaim()).jobId).toBe(first.jobId);
  });

  it('lets an account with one video go before an import of another, with a single slot too', async () => {
    const importer = await seedAccount(db);
    const single = await seedAccount(db);
    for (let i = 0; i < 100; i++) await queueVideo(importer);
    const running = await mustClaim();
    const { jobId } = await queueVideo(single);

    // One slot: each task ends before the next claim. The importer has a task between at most once.
    let others = 0;
    let task = running;
    const seen: string[] = [];
    while (!seen.includes('assemble')) {
      if (task.kind === 'plan') await finishPlan(db, task, somePlan());
      else if (task.kind !== 'assemble') await finish(task);
      task = await mustClaim();
      if (task.jobId === jobId) seen.push(task.kind);
      else others += 1;
    }
    expect(seen).toEqual(['plan', 'video', 'audio', 'assemble']);
    expect(others).toBeLessThanOrEqual(1);
  });

  it('puts a higher priority before everything else', async () => {
    const account = await seedAccount(db);
    await queueVideo(account);
    const urgent = await queueVideo(account);
    await db.query('update encode_tasks set priority = 10 where job_id = $1', [urgent.jobId]);
    expect((await mustClaim()).jobId).toBe(urgent.jobId);
  });

  it('leaves tasks that are not due, of another class, or locked by another transaction', async () => {
    const account = await seedAccount(db);
    const waiting = await queueVideo(account);
    const large = await queueVideo(account);
    const locked = await queueVideo(await seedAccount(db));
    const free = await queueVideo(await seedAccount(db));
    await db.query(`update encode_tasks set run_after = now() + interval '1 h' where job_id = $1`, [
      waiting.jobId,
    ]);
    await db.query(`update encode_tasks set class = 'large' where job_id = $1`, [large.jobId]);
    await db.transaction(async (tx) => {
      await tx.query('select from encode_tasks where job_id = $1 for update', [locked.jobId]);
      expect((await mustClaim()).jobId).toBe(free.jobId);
      expect(await claim()).toBeNull();
    });
    expect((await claimTask(db, { worker: 'big', class: 'large', leaseMs: 1000 }))?.jobId).toBe(large.jobId);
  });
});
