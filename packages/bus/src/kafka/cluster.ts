import { type Clock } from '@millrace/platform';
import { type Admin } from './kafkajs.ts';
import { BusRequestError, BusUnavailableError } from '../bus.ts';
import { type KafkaClient } from './client.ts';
import { protocolError, toBusError } from './errors.ts';
import { type KafkaTimes } from './times.ts';
import { within } from './within.ts';

/** Where a group stands in a partition. */
export interface Position {
  /** Offset of the next message to handle; undefined when the group never committed one. */
  committed: number | undefined;
  /** Offset of the first message that is still kept. */
  low: number;
  /** The next free offset. */
  high: number;
}

/** How many messages that are still kept the group has not committed. */
export const lagOf = ({ committed, low, high }: Position): number => high - Math.max(committed ?? low, low);

/** What kafkajs commits for a group whose offset retention has deleted: "from the earliest on". */
const earliestSentinel = -2;
const retryMs = 100;
/** A topic that was just created is not known to every broker at once. */
const unknownTopicPatienceMs = 1_000;

/** What a broker answers while it is not ready, or not the right one any more. */
const passing = new Set([
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'NOT_COORDINATOR_FOR_GROUP',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_CONTROLLER',
]);

/** True for errors that are gone a moment later. */
export const isPassing = (error: unknown): boolean => passing.has(protocolError(error) ?? '');

/**
 * Questions to the cluster, one after the other (kafkajs keeps the metadata of the last one only). A client that
 * failed is given up, so that the next question starts on fresh connections.
 */
export class KafkaCluster {
  readonly #open: () => KafkaClient;
  readonly #clock: Clock;
  readonly #times: KafkaTimes;
  readonly #partitions = new Map<string, { count: number; until: number }>();
  #session: { client: KafkaClient; admin: Admin } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(open: () => KafkaClient, { clock, times }: { clock: Clock; times: KafkaTimes }) {
    this.#open = open;
    this.#clock = clock;
    this.#times = times;
  }

  /** Number of partitions of a topic, as it was some minutes ago at most. @throws {BusRequestError} `unknown_topic` */
  async partitions(topic: string): Promise<number> {
    const now = this.#clock.now().getTime();
    const known = this.#partitions.get(topic);
    if (known && known.until > now) return known.count;
    const counts = await this.#countPartitions([topic], unknownTopicPatienceMs);
    const count = counts.get(topic) ?? 0;
    if (count === 0) throw new BusRequestError('unknown_topic', `there is no topic ${topic}`);
    this.#partitions.set(topic, { count, until: now + this.#times.metadataMs });
    return count;
  }

  /** Resolves when topics that were just created are known. */
  async appeared(topics: readonly string[]): Promise<void> {
    if (topics.length > 0) await this.#countPartitions(topics, this.#times.requestMs);
  }

  /** Where a group stands in each partition of a topic. */
  positions(groupId: string, topic: string): Promise<Map<number, Position>> {
    return this.ask(async (admin) => {
      // In this order: what is published meanwhile makes a lag too large, never negative.
      const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
      const ends = await admin.fetchTopicOffsets(topic);
      const offsets = new Map(
        committed?.partitions.map(({ partition, offset }) => [partition, Number(offset)]),
      );
      return new Map(
        ends
          .map(({ partition, ...end }): [number, Position] => {
            const [low, high] = [Number(end.low), Number(end.high)];
            const offset = offsets.get(partition) ?? -1;
            return [
              partition,
              { committed: offset === earliestSentinel ? low : naturalOf(offset), low, high },
            ];
          })
          .sort(([a], [b]) => a - b),
      );
    });
  }

  /** The offset of a partition's first message that is still kept. */
  async low(topic: string, partition: number): Promise<number> {
    const ends = await this.ask((admin) => admin.fetchTopicOffsets(topic));
    return Number(ends.find((end) => end.partition === partition)?.low ?? 0);
  }

  /**
   * Has the cluster asked something, within the time of a request.
   *
   * @throws {BusUnavailableError} when it does not answer, {BusRequestError} for what does not exist
   */
  ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    const answer = this.#last.then(() => this.#ask(question));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await within(this.#times.farewellMs, this.#last, () => undefined);
    await this.#giveUp();
  }

  /** Number of partitions by topic. Topics that no broker knows get this long to become known. */
  async #countPartitions(topics: readonly string[], patienceMs: number): Promise<Map<string, number>> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      try {
        const metadata = await this.ask((admin) => admin.fetchTopicMetadata({ topics: [...topics] }));
        return new Map(metadata.topics.map(({ name, partitions }) => [name, partitions.length]));
      } catch (error) {
        if (!(error instanceof BusRequestError) || performance.now() > deadline) throw error;
        await this.#clock.sleep(retryMs);
      }
    }
  }

  async #ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#times.requestMs;
    for (;;) {
      try {
        return await within(deadline - performance.now(), this.#try(question), () => {
          throw new BusUnavailableError('the cluster did not answer in time');
        });
      } catch (error) {
        const known = toBusError(error);
        if (known instanceof BusRequestError) throw known;
        await this.#giveUp();
        if (!isPassing(error) || performance.now() > deadline) throw known;
        await this.#clock.sleep(retryMs);
      }
    }
  }

  async #try<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    if (this.#closed) throw new BusRequestError('closed', 'the bus is closed');
    if (!this.#session) {
      const client = this.#open();
      this.#session = { client, admin: client.kafka.admin({ retry: { retries: 0 } }) };
      await this.#session.admin.connect();
    }
    return question(this.#session.admin);
  }

  async #giveUp(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (!session) return;
    await within(this.#times.farewellMs, session.admin.disconnect(), () => undefined).catch(() => undefined);
    session.client.sever();
  }
}

const naturalOf = (offset: number): number | undefined => (offset < 0 ? undefined : offset);
