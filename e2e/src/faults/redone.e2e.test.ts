import { describe, expect, it } from '@jest/globals';
import { type PhaseReached } from './phase-log.ts';
import { notRedone } from './redone.ts';
import { type RecordKept } from './world.ts';

type Reached = Omit<PhaseReached, 'service' | 'order'>;

const video: RecordKept['videos'][number] = {
  ...{ id: 'vid_1', status: 'ready', deleted: false, purged: false, failureCode: null },
  ...{ indexKey: null, durationMs: 4_000, jobId: 'job_1' },
};
const task = { id: 'tsk_1', videoId: 'vid_1', status: 'done', failures: 0, losses: 1 };
const record = { videos: [video], tasks: [task] };

/** Process 1 is killed at the first of these. */
const after = (first: Reached, ...others: Reached[]): readonly PhaseReached[] => [
  {
    ...{ ...first, service: 'some' },
    order: { id: 'a', phase: first.phase, signal: 'SIGKILL', where: 'topic' },
  },
  ...others.map((each) => ({ ...each, service: 'some' })),
];

const place = { topic: 'topic', partition: 1, offset: '7' };
const rows = (...ids: string[]): Reached['details'] => ({ rows: ids.map((id) => ({ id, topic: 'topic' })) });
const attempt = (fence: number): Reached['details'] => ({ taskId: 'tsk_1', fence, kind: 'video' });

describe('what a kill left half done', () => {
  it.each<[string, Reached, Reached, string]>([
    [
      'a permit whose offset was committed before its claim',
      { pid: 1, phase: 'task.claimed', details: place },
      { pid: 2, phase: 'message.handled', details: { ...place, offset: '8' } },
      'message 7 of topic 1 did not come again after the kill at task.claimed',
    ],
    [
      'a message whose offset was committed before it was handled',
      { pid: 1, phase: 'message.handled', details: place },
      { pid: 1, phase: 'message.handled', details: place },
      'message 7 of topic 1 did not come again after the kill at message.handled',
    ],
    [
      'a row that was deleted before its acknowledgement',
      { pid: 1, phase: 'outbox.published', details: rows('3', '4') },
      { pid: 2, phase: 'outbox.read', details: rows('3', '5') },
      'row 4 of the outbox, for topic, did not come again after the kill at outbox.published',
    ],
    [
      'a task that was recorded before its objects were stored',
      { pid: 1, phase: 'task.stored', details: attempt(1) },
      { pid: 2, phase: 'task.stored', details: attempt(1) },
      'task tsk_1 did not come again after the kill at task.stored',
    ],
  ])('is missed: %s', (_, killed, other, missing) => {
    expect(notRedone(after(killed, other), record)).toEqual([missing]);
  });

  it.each<[string, Reached, Reached]>([
    [
      'a permit',
      { pid: 1, phase: 'task.claimed', details: place },
      { pid: 2, phase: 'message.handled', details: place },
    ],
    [
      'rows',
      { pid: 1, phase: 'outbox.read', details: rows('3', '4') },
      { pid: 2, phase: 'outbox.read', details: rows('2', '3', '4') },
    ],
    [
      'a task',
      { pid: 1, phase: 'task.stored', details: attempt(1) },
      { pid: 2, phase: 'task.stored', details: attempt(2) },
    ],
  ])('is done again: %s', (_, killed, other) => {
    expect(notRedone(after(killed, other), record)).toEqual([]);
  });

  it('is not asked of the work on a video that was removed', () => {
    const killed = after({ pid: 1, phase: 'task.stored', details: attempt(1) });
    expect(notRedone(killed, { ...record, videos: [{ ...video, deleted: true }] })).toEqual([]);
  });
});
