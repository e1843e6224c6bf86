import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock } from '@millrace/platform';

export interface ManualClock extends Clock {
  /**
   * Moves time forward. Sleeps that fall due end in the order of their time, each at its own instant; what they
   * wake may sleep again within the same advance.
   */
  advance(ms: number): Promise<void>;
  /** Resolves when at least `count` sleeps are waiting: the moment to advance. */
  whenSleeping(count?: number): Promise<void>;
}

interface Sleeper {
  dueMs: number;
  wake(): void;
}

/** A clock that stands still until the test moves it. */
export function createManualClock(start: Date = new Date('2030-01-01T00:00:00.000Z')): ManualClock {
  let nowMs = start.getTime();
  const sleepers = new Set<Sleeper>();
  const watchers = new Set<{ count: number; resolve(): void }>();

  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const leave = (): void => {
        sleepers.delete(sleeper);
        signal?.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal?.reason as Error);
      };
      const sleeper: Sleeper = {
        dueMs: nowMs + Math.max(0, ms),
        wake: () => {
          leave();
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', onAbort, { once: true });
      for (const watcher of watchers) {
        if (sleepers.size < watcher.count) continue;
        watchers.delete(watcher);
        watcher.resolve();
      }
    });

  const advance = async (ms: number): Promise<void> => {
    const targetMs = nowMs + ms;
    await nextTurn();
    for (;;) {
      const next = [...sleepers].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined || next.dueMs > targetMs) break;
      nowMs = Math.max(nowMs, next.dueMs);
      next.wake();
      // What it woke runs, and perhaps sleeps again, before the next one is looked for.
      await nextTurn();
    }
    nowMs = Math.max(nowMs, targetMs);
  };

  const whenSleeping = (count = 1): Promise<void> =>
    sleepers.size >= count ? Promise.resolve() : new Promise((resolve) => watchers.add({ count, resolve }));

  return { now: () => new Date(nowMs), sleep, advance, whenSleeping };
}
