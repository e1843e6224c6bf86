import { type Clock, type Logger } from '@millrace/platform';
import { BusUnavailableError } from '../bus.ts';
import { sleepUnlessAborted } from '../delivery/wakeup.ts';
import { isPassing } from './cluster.ts';
import { GroupConsumer, type GroupConsumerDeps } from './group-consumer.ts';
import { type KafkaTimes } from './times.ts';

export interface GroupMemberDeps extends GroupConsumerDeps {
  clock: Clock;
  logger: Logger;
  times: KafkaTimes;
  /** Resolves when what the consumer was assigned is taken up. */
  settled(): Promise<void>;
  /** The consumer is no more, and what it had may be anybody's. */
  onLost(): void;
}

const firstJoinRetryMs = 200;
const rejoin = { firstMs: 200, longestMs: 5_000 };

/** One member of a group, whatever becomes of its consumers: whenever one ends, a fresh one joins, for as long as it takes. */
export class GroupMember {
  readonly #deps: GroupMemberDeps;
  readonly #asked = new AbortController();
  #consumer: GroupConsumer;
  #keeping: Promise<void> = Promise.resolve();

  constructor(deps: GroupMemberDeps) {
    this.#deps = deps;
    this.#consumer = new GroupConsumer(deps);
  }

  /** The present consumer, which may have ended. */
  get consumer(): GroupConsumer {
    return this.#consumer;
  }

  /** Joins for the first time. @throws {BusUnavailableError} when the group cannot be joined */
  async open(): Promise<void> {
    const { clock, times } = this.#deps;
    const deadline = performance.now() + times.requestMs;
    for (;;) {
      try {
        await this.#join();
        break;
      } catch (error) {
        // The first member of all finds brokers that have yet to make the place where offsets are kept.
        if (!isPassing(error) || performance.now() > deadline) throw error;
        await clock.sleep(firstJoinRetryMs);
        this.#consumer = new GroupConsumer(this.#deps);
      }
    }
    this.#keeping = this.#keep();
  }

  /** Leaves the group. */
  async close(): Promise<void> {
    this.#asked.abort();
    this.#consumer.end(new BusUnavailableError('the subscription was closed'));
    await this.#keeping;
    await this.#consumer.close();
  }

  async #join(): Promise<void> {
    try {
      await this.#consumer.join();
      const failure = await Promise.race([this.#deps.settled(), this.#consumer.ended]);
      if (failure) throw failure;
    } catch (error) {
      this.#deps.onLost();
      await this.#consumer.close();
      throw error;
    }
  }

  async #keep(): Promise<void> {
    const { clock, logger } = this.#deps;
    for (;;) {
      const reason = await this.#consumer.ended;
      if (this.#asked.signal.aborted) return;
      logger.warn({ err: reason }, 'the group is out of reach');
      this.#deps.onLost();
      await this.#consumer.close();
      for (let waitMs = rejoin.firstMs; ; waitMs = Math.min(waitMs * 2, rejoin.longestMs)) {
        if (!(await sleepUnlessAborted(clock, waitMs, this.#asked.signal))) return;
        this.#consumer = new GroupConsumer(this.#deps);
        try {
          await this.#join();
          break;
        } catch (error) {
          logger.debug({ err: error }, 'the group could not be joined yet');
        }
      }
      logger.info({}, 'joined the group again');
    }
  }
}
