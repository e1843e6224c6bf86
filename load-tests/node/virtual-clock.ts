import { type Clock } from '../src/world.ts';

/** A clock on which nobody waits: when all that runs sleeps, it jumps to the moment at which the first wakes. */
export function createVirtualClock(): Clock {
  let nowMs = 0;
  let sleepers: { dueMs: number; wake: () => void }[] = [];
  let isWatching = false;
  const watch = (): void => {
    if (isWatching || sleepers.length === 0) return;
    isWatching = true;
    // Promises that can settle have settled by then.
    setImmediate(() => {
      isWatching = false;
      nowMs = Math.min(...sleepers.map(({ dueMs }) => dueMs));
      const due = sleepers.filter(({ dueMs }) => dueMs === nowMs);
      sleepers = sleepers.filter(({ dueMs }) => dueMs !== nowMs);
      for (const { wake } of due) wake();
      watch();
    });
  };
  return {
    now: () => nowMs,
    sleep: (ms) =>
      new Promise((wake) => {
        sleepers.push({ dueMs: nowMs + Math.max(0, ms), wake });
        watch();
      }),
  };
}
