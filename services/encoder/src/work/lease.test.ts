import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { type ClaimedTask, type Database, type HeartbeatAnswer } from '@millrace/store';
import { createManualClock, type ManualClock } from '@millrace/testing';
import { holdLease, type HeldLease } from './lease.ts';
import { AttemptStopped } from './trouble.ts';

const task: ClaimedTask = {
  ...{ id: 'tsk_1', jobId: 'job_1', videoId: 'vid_1', accountId: 'acc_1', kind: 'video', index: 0 },
  ...{ class: 'standard', fence: 3, cost: 1, failures: 0, losses: 0, queuedMs: 0, trace: {} },
};
let clock: ManualClock;
let beats: number[];
let answer: () => HeartbeatAnswer;
let lease: HeldLease;

beforeEach(() => {
  clock = createManualClock();
  const startedAt = clock.now().getTime();
  beats = [];
  answer = () => 'ok';
  const store = {
    query: (_text: string, values: unknown[]) => {
      expect(values).toEqual(['tsk_1', 3, 9_000]);
      beats.push(clock.now().getTime() - startedAt);
      return Promise.resolve().then(() => ({ rows: [{ answer: answer() }], rowCount: 1 }));
    },
  } as unknown as Database;
  lease = holdLease({ store, clock, logger: silentLogger }, task, 9_000);
});
afterEach(() => lease.release());

const stopReason = (): string | null =>
  lease.signal.aborted ? (lease.signal.reason as AttemptStopped).reason : null;
const away = (): never => {
  throw new Error('away');
};

describe('holdLease', () => {
  it('beats three times as often as the lease lasts, until it is released', async () => {
    await clock.advance(9_500);
    expect(beats).toEqual([3_000, 6_000, 9_000]);
    await lease.release();
    await clock.advance(9_000);
    expect(beats.length).toBe(3);
    expect(stopReason()).toBeNull();
  });

  it.each(['cancelled', 'lost'] as const)('stops the work when it is %s', async (reason) => {
    answer = () => reason;
    await clock.advance(3_000);
    expect(stopReason()).toBe(reason);
  });

  it('bears beats that fail as long as one gets through within the lease', async () => {
    answer = away;
    await clock.advance(6_500);
    answer = () => 'ok';
    await clock.advance(3_000);
    answer = away;
    await clock.advance(8_000);
    expect(stopReason()).toBeNull();
  });

  it('counts the task as lost when no beat got through for as long as the lease', async () => {
    answer = away;
    await clock.advance(8_999);
    expect(stopReason()).toBeNull();
    await clock.advance(1);
    expect(stopReason()).toBe('lost');
  });

  it('can be stopped from this side', () => {
    lease.stop(new AttemptStopped('shutdown'));
    expect(stopReason()).toBe('shutdown');
  });
});
