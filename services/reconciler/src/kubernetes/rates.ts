import { type Clock } from '@millrace/platform';

export interface RateOptions {
  /** How many may come at once. */
  burst: number;
  /** How many come after those. */
  perSecond: number;
  clock: Clock;
}

/** A rate for each key by itself (a token bucket, kept as the generic cell rate algorithm keeps it: by one time each). */
export interface Rates {
  /** Books one more for the key. @returns in how many milliseconds it is due */
  book(key: string): number;
}

export function createRates({ burst, perSecond, clock }: RateOptions): Rates {
  const everyMs = 1_000 / perSecond;
  const burstMs = burst * everyMs;
  /** When each key will have its whole burst again. */
  const restedAt = new Map<string, number>();
  let sweepAt = 0;

  const sweep = (now: number): void => {
    if (now < sweepAt) return;
    for (const [key, at] of restedAt) if (at <= now) restedAt.delete(key);
    sweepAt = now + burstMs;
  };

  return {
    book: (key) => {
      const now = clock.now().getTime();
      sweep(now);
      const at = Math.max(restedAt.get(key) ?? 0, now) + everyMs;
      restedAt.set(key, at);
      return Math.max(0, Math.ceil(at - burstMs - now));
    },
  };
}
