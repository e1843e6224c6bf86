import { ObjectStoreError } from '@millrace/objects';
import { type Clock } from '@millrace/platform';
import { DatabaseUnavailableError } from '@millrace/store';

const firstWaitMs = 250;
const longestWaitMs = 5_000;

const isOutage = (error: unknown): boolean =>
  error instanceof DatabaseUnavailableError ||
  (error instanceof ObjectStoreError && error.code === 'unavailable');

export interface Patience {
  clock: Clock;
  signal: AbortSignal;
  /** How long an outage is sat out before its error is let through, in milliseconds. */
  forMs: number;
}

/**
 * Does something that an outage of the record or the object store may hinder, again and again with growing
 * waits: minutes of encoding are worth more than a few tries. `work` must bear repeating.
 * @throws the last error, or at once any that is not an outage; the signal's reason when it aborts
 */
export async function patiently<T>({ clock, signal, forMs }: Patience, work: () => Promise<T>): Promise<T> {
  const until = clock.now().getTime() + forMs;
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isOutage(error) || clock.now().getTime() + waitMs > until) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}
