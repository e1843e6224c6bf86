import { type Clock, type Logger, reachPhase } from '@millrace/platform';
import { type BusMessage, BusUnavailableError, type Handler } from '../bus.ts';
import { type OffsetCommitter, type OffsetHolder } from './offset-committer.ts';
import { type Slots } from './slots.ts';
import { sleepUnlessAborted, Wakeup } from './wakeup.ts';

/** A message as a log keeps it. */
export interface StoredMessage {
  offset: number;
  key: string;
  value: string;
  headers: Record<string, string>;
  timestamp: Date;
}

export interface ReaderDeps {
  topic: string;
  handler: Handler;
  /** `SubscribeOptions.pause`. */
  pause: (() => Promise<void> | undefined) | undefined;
  slots: Slots;
  committer: OffsetCommitter;
  clock: Clock;
  logger: Logger;
  /** Called when the buffer has room for more. */
  onHungry: () => void;
  /** What is buffered before nothing more is fetched: below half of it more is. */
  capacity: { messages: number; bytes: number };
}

const firstRetryMs = 200;
const longestRetryMs = 30_000;

/**
 * Delivers the messages of one owned partition, one after the other, from a small buffer that the subscription
 * fills. Ends when stopped: by a hand-over or a close (what a handler still finishes is committed), or because
 * the partition was lost (nothing is committed any more).
 */
export class PartitionReader implements OffsetHolder {
  readonly partition: number;
  readonly epoch: number;
  /** Resolves when the loop has ended and no handler runs. */
  readonly done: Promise<void>;
  /** The offset to read next from the log. */
  fetchFrom: number;
  /** True while the log may hold messages that are not in the buffer. */
  stale = true;
  /** The offset after the last message that was given to the handler. */
  seen: number;

  readonly #deps: ReaderDeps;
  readonly #buffer: StoredMessage[] = [];
  readonly #arrival = new Wakeup();
  readonly #stop = new AbortController();
  #current: AbortController | undefined;
  #bufferedBytes = 0;
  #lost = false;
  #failures = 0;

  /** @param after what must end before the first delivery: the last reader of this partition */
  constructor(
    position: { partition: number; epoch: number; offset: number },
    deps: ReaderDeps,
    after: Promise<void> = Promise.resolve(),
  ) {
    this.partition = position.partition;
    this.epoch = position.epoch;
    this.fetchFrom = position.offset;
    this.seen = position.offset;
    this.#deps = deps;
    this.done = after.then(() => this.#run());
  }

  get lost(): boolean {
    return this.#lost;
  }

  get wantsMore(): boolean {
    return this.stale && this.#fill < 0.5;
  }

  /** True while nothing more should be fetched. */
  get full(): boolean {
    return this.#fill >= 1;
  }

  get #fill(): number {
    const { messages, bytes } = this.#deps.capacity;
    return Math.max(this.#buffer.length / messages, this.#bufferedBytes / bytes);
  }

  /**
   * Takes messages that follow what it has.
   *
   * @param next where reading goes on after them
   */
  push(messages: readonly StoredMessage[], next: number): void {
    this.fetchFrom = next;
    this.#buffer.push(...messages);
    for (const message of messages) this.#bufferedBytes += message.value.length;
    this.#arrival.wake();
  }

  /** Stops delivery and aborts the handler in flight; if that one still succeeds, its message is committed. */
  stop(): void {
    this.#stop.abort();
    this.#current?.abort(new Error('the subscription gives this partition up'));
    this.#arrival.wake();
  }

  /** The partition has another owner (or may have): stops, and commits nothing any more. */
  lose(): void {
    this.#lost = true;
    this.#deps.committer.forget(this);
    this.stop();
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const [message] = this.#buffer;
      if (message === undefined) {
        await this.#arrival.wait();
        continue;
      }
      if (!(await this.#deps.slots.acquire(this.#stop.signal))) break;
      const handled = await this.#attempt(message);
      this.#deps.slots.release();
      if (handled) this.#advance(message);
      else await this.#waitBeforeRetry();
    }
  }

  /** True when the message is done: handled, or committed early by its handler. Never rejects. */
  async #attempt(message: StoredMessage): Promise<boolean> {
    let committed = false;
    const controller = new AbortController();
    const commit = async (): Promise<void> => {
      if (this.#lost) throw new BusUnavailableError(`partition ${this.partition} was taken over`);
      await this.#deps.committer.commit(this, message.offset + 1);
      committed = true;
    };
    try {
      if (!(await this.#passGate())) return false;
      this.seen = Math.max(this.seen, message.offset + 1);
      this.#current = controller;
      await this.#deps.handler(this.#toBusMessage(message), {
        commit,
        signal: controller.signal,
      });
      return true;
    } catch (error) {
      if (!this.#stopped) this.#logFailure(message, error, committed);
      return committed;
    } finally {
      this.#current = undefined;
    }
  }

  /** Waits at the subscriber's gate; false when the partition was given up meanwhile. */
  async #passGate(): Promise<boolean> {
    const gate = this.#deps.pause?.();
    if (gate !== undefined) {
      let leave = (): void => undefined;
      const stopped = new Promise<void>((resolve) => {
        leave = resolve;
        this.#stop.signal.addEventListener('abort', leave);
      });
      await Promise.race([gate, stopped]).finally(() =>
        this.#stop.signal.removeEventListener('abort', leave),
      );
    }
    return !this.#stopped;
  }

  #advance(message: StoredMessage): void {
    this.#buffer.shift();
    this.#bufferedBytes -= message.value.length;
    this.#failures = 0;
    if (!this.#lost) {
      const { partition } = this;
      const offset = String(message.offset);
      reachPhase('message.handled', () => ({ topic: this.#deps.topic, partition, offset }));
      // A failure keeps the offset pending: the next commit or the next beat writes it.
      this.#deps.committer.commit(this, message.offset + 1).catch(() => undefined);
    }
    if (this.wantsMore) this.#deps.onHungry();
  }

  async #waitBeforeRetry(): Promise<void> {
    this.#failures += 1;
    const wait = Math.min(firstRetryMs * 2 ** (this.#failures - 1), longestRetryMs);
    await sleepUnlessAborted(this.#deps.clock, wait, this.#stop.signal);
  }

  #logFailure(message: StoredMessage, error: unknown, committed: boolean): void {
    const fields = {
      topic: this.#deps.topic,
      partition: this.partition,
      offset: message.offset,
      failures: this.#failures + 1,
      err: error,
    };
    this.#deps.logger.warn(
      fields,
      committed ? 'a handler failed after its commit' : 'a handler failed; the message is delivered again',
    );
  }

  #toBusMessage({ offset, key, value, headers, timestamp }: StoredMessage): BusMessage {
    const { topic } = this.#deps;
    return { topic, partition: this.partition, offset: String(offset), key, value, headers, timestamp };
  }
}
