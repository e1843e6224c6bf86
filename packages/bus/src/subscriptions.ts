import { BusRequestError, type Subscription } from './bus.ts';

/** The subscriptions of a bus, and whether that is closed. */
export class Subscriptions<S extends Subscription> implements Iterable<S> {
  readonly #open = new Set<S>();
  #closing: Promise<void> | undefined;

  [Symbol.iterator](): Iterator<S> {
    return this.#open[Symbol.iterator]();
  }

  /** @throws {BusRequestError} `closed` */
  assertOpen(): void {
    if (this.#closing !== undefined) throw new BusRequestError('closed', 'the bus is closed');
  }

  /**
   * Takes one that has just opened, and gives it as its subscriber sees it. One whose bus was closed meanwhile is
   * closed too.
   * @throws {BusRequestError} `closed`
   */
  async add(subscription: S): Promise<Subscription> {
    this.#open.add(subscription);
    const close = async (): Promise<void> => {
      await subscription.close();
      this.#open.delete(subscription);
    };
    if (this.#closing !== undefined) {
      await close();
      this.assertOpen();
    }
    return { assigned: () => subscription.assigned(), close };
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((subscription) => subscription.close()));
  }

  /** Closes the bus, once: `end` is how. */
  close(end: () => Promise<void>): Promise<void> {
    return (this.#closing ??= end());
  }
}
