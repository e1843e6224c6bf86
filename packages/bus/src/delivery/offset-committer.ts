import { BusUnavailableError } from '../bus.ts';

/** The owner of an offset: a partition at one epoch. */
export interface OffsetHolder {
  readonly partition: number;
  readonly epoch: number;
  /** True once the partition was taken away: its offsets count no more. */
  readonly lost: boolean;
  /** Called when the store says that the partition has another owner now. */
  lose(): void;
}

/** An offset to commit: everything before `next` is handled. */
export interface OffsetCommit {
  partition: number;
  epoch: number;
  next: number;
}

/** Writes offsets; answers with the partitions that were still this member's. Rejects when it may not have written. */
export type WriteOffsets = (commits: readonly OffsetCommit[]) => Promise<ReadonlySet<number>>;

/**
 * Writes a subscription's offsets: one statement in flight, and all that is handled meanwhile goes into the
 * next one. What could not be written stays pending for the next flush.
 */
export class OffsetCommitter {
  readonly #write: WriteOffsets;
  readonly #pending = new Map<OffsetHolder, number>();
  #running: Promise<void> = Promise.resolve();
  #queued: Promise<ReadonlySet<OffsetHolder>> | undefined;

  constructor(write: WriteOffsets) {
    this.#write = write;
  }

  /**
   * Commits everything before `next`.
   *
   * @throws {BusUnavailableError} when it could not be written, or the holder lost its partition
   */
  async commit(holder: OffsetHolder, next: number): Promise<void> {
    this.#pending.set(holder, next);
    const refused = await this.#flight();
    if (refused.has(holder)) throw new BusUnavailableError(`partition ${holder.partition} was taken over`);
  }

  /** Writes what is pending. @throws {BusUnavailableError} when it could not be written */
  async flush(): Promise<void> {
    if (this.#pending.size > 0 || this.#queued) await this.#flight();
    else await this.#running;
  }

  /** Drops what is pending for a holder whose partition is gone: nothing of it may be written any more. */
  forget(holder: OffsetHolder): void {
    this.#pending.delete(holder);
  }

  /** The next flight: everybody who asks before it starts is in it. Resolves with those it refused. */
  #flight(): Promise<ReadonlySet<OffsetHolder>> {
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      const flight = this.#send([...this.#pending]);
      this.#pending.clear();
      this.#running = flight.then(ignore, ignore);
      return flight;
    });
    return this.#queued;
  }

  async #send(batch: readonly [OffsetHolder, number][]): Promise<ReadonlySet<OffsetHolder>> {
    const refused = new Set<OffsetHolder>();
    if (batch.length === 0) return refused;
    const commits = batch.map(([{ partition, epoch }, next]) => ({ partition, epoch, next }));
    let taken: ReadonlySet<number>;
    try {
      taken = await this.#write(commits);
    } catch (error) {
      for (const [holder, next] of batch) {
        if (!holder.lost && !this.#pending.has(holder)) this.#pending.set(holder, next);
      }
      throw error;
    }
    for (const [holder] of batch) {
      if (taken.has(holder.partition)) continue;
      refused.add(holder);
      holder.lose();
    }
    return refused;
  }
}

const ignore = (): void => undefined;
