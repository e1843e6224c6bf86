import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, it } from '@jest/globals';
import { reachPhase } from './phase.ts';

describe('phases', () => {
  it('are told on a diagnostics channel, at once', () => {
    const heard: unknown[] = [];
    const listener = (message: unknown): unknown => heard.push(message);
    subscribe('millrace:phase', listener);
    reachPhase('task.claimed', () => ({ taskId: 'tsk_1' }));
    expect(heard).toEqual([{ phase: 'task.claimed', details: { taskId: 'tsk_1' } }]);
    unsubscribe('millrace:phase', listener);
  });

  it('cost no look at their details while nobody listens', () => {
    let asked = 0;
    reachPhase('outbox.read', () => ({ asked: ++asked }));
    expect(asked).toBe(0);
  });
});
