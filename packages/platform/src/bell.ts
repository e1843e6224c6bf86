import { type Clock } from './clock.ts';

/** Wakes a loop early; a ring while nobody waits is kept for the next wait. */
export interface Bell {
  ring(): void;
  /** Resolves at the next ring, after `ms`, or when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** A bell for one waiter. */
export function createBell(clock: Clock): Bell {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    ring: () => {
      rung = true;
      wake?.();
    },
    wait: async (ms, signal) => {
      if (!rung) {
        const woken = new AbortController();
        wake = () => woken.abort();
        await clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
        wake = undefined;
      }
      rung = false;
    },
  };
}
