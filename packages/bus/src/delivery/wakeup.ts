import { type Clock } from '@millrace/platform';

/** A flag that one loop waits for. A wake that comes before the wait is not lost. */
export class Wakeup {
  #woken = false;
  #resolve: (() => void) | undefined;

  wake(): void {
    this.#woken = true;
    this.#resolve?.();
  }

  /** Resolves at the next (or an unseen) wake, which it consumes. */
  async wait(): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
      });
      this.#resolve = undefined;
    }
    this.#woken = false;
  }

  /** The same, but for `ms` milliseconds of this clock at most. */
  async waitFor(ms: number, clock: Clock): Promise<void> {
    const timer = new AbortController();
    void sleepUnlessAborted(clock, ms, timer.signal).then((slept) => {
      if (slept) this.wake();
    });
    await this.wait();
    timer.abort();
  }
}

/** Sleeps; resolves false, not rejecting, when the signal aborts first. */
export const sleepUnlessAborted = (clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> =>
  clock.sleep(ms, signal).then(
    () => true,
    () => false,
  );
