import { describe, expect, it } from '@jest/globals';
import { createTailProgress } from './confirmation.ts';

describe('the progress of the tail', () => {
  it('is that of the partition that is behind, and unknown before all were heard', () => {
    const progress = createTailProgress();
    expect(progress.readUpToMs()).toBe(-Infinity);
    progress.expectPartitions(2);
    progress.heartbeat(0, 100, 100);
    expect(progress.readUpToMs()).toBe(-Infinity);
    progress.heartbeat(1, 90, 100);
    expect(progress.readUpToMs()).toBe(90);
    progress.heartbeat(1, 120, 120);
    expect(progress.readUpToMs()).toBe(100);
    progress.expectPartitions(1);
    expect(progress.readUpToMs()).toBe(100);
  });

  it('does not go back for an older heartbeat', () => {
    const progress = createTailProgress();
    progress.heartbeat(0, 100, 100);
    progress.heartbeat(0, 50, 110);
    expect(progress.readUpToMs()).toBe(100);
  });

  it('does go back with this clock: what it called later was never reached', () => {
    const progress = createTailProgress();
    progress.heartbeat(0, 3_600_000, 3_600_000);
    progress.heartbeat(0, 500, 500);
    expect(progress.readUpToMs()).toBe(500);
  });
});
