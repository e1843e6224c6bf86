/** A bounded number of slots, given out in the order of asking: partitions take turns. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<(granted: boolean) => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves true with a slot, or false without one when the signal aborts. */
  acquire(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const settle = (granted: boolean): void => {
        this.#waiting.delete(settle);
        signal.removeEventListener('abort', onAbort);
        resolve(granted);
      };
      const onAbort = (): void => settle(false);
      this.#waiting.add(settle);
      signal.addEventListener('abort', onAbort);
    });
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next(true);
  }
}
