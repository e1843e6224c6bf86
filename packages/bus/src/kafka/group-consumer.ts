import { type Consumer, type EachBatchPayload } from './kafkajs.ts';
import { type Logger } from '@millrace/platform';
import { BusUnavailableError } from '../bus.ts';
import { stickyAssigner } from './assigner.ts';
import { type KafkaClient } from './client.ts';
import { toBusError } from './errors.ts';
import { type KafkaTimes } from './times.ts';
import { within } from './within.ts';

/** Messages of one partition as a fetch brought them. */
export type FetchedBatch = EachBatchPayload['batch'];

export interface GroupConsumerDeps {
  open: () => KafkaClient;
  groupId: string;
  topic: string;
  logger: Logger;
  times: KafkaTimes;
  /** Partitions that this member would rather keep when the group shares them out. */
  owned(): readonly number[];
  /** The group has given this member these partitions; nothing is fetched meanwhile. */
  onAssigned(partitions: readonly number[], consumer: GroupConsumer): void;
  /** Nothing more is fetched, and no heartbeat sent, before this resolves. `isStale` turns true when it is sought. */
  onBatch(batch: FetchedBatch, isStale: () => boolean, consumer: GroupConsumer): Promise<void>;
}

/** Some seconds of trouble end no membership. Longer ones do: then a fresh consumer takes over. */
const consumerRetry = {
  retries: 8,
  initialRetryTime: 200,
  maxRetryTime: 2_000,
  restartOnFailure: () => Promise.resolve(false),
};
const fetchBytes = { partition: 1_048_576, all: 10_485_760 };

/**
 * One consumer of kafkajs from joining to its end, which comes by itself when kafkajs gives up, when the group has
 * not been heard of for a session, or when it is told so. It is never restarted: see `KafkaSubscription`.
 */
export class GroupConsumer {
  /** Resolves with the reason once this consumer is of no use any more. */
  readonly ended: Promise<Error>;
  readonly #deps: GroupConsumerDeps;
  readonly #client: KafkaClient;
  readonly #consumer: Consumer;
  readonly #ended = Promise.withResolvers<Error>();
  #watch: NodeJS.Timeout | undefined;
  /** Until when silence means nothing, by `performance.now()`. */
  #patientUntil = 0;

  constructor(deps: GroupConsumerDeps) {
    const { times } = deps;
    this.#deps = deps;
    this.ended = this.#ended.promise;
    this.#client = deps.open();
    this.#consumer = this.#client.kafka.consumer({
      groupId: deps.groupId,
      sessionTimeout: times.sessionMs,
      rebalanceTimeout: times.rebalanceMs,
      heartbeatInterval: times.heartbeatMs,
      maxWaitTimeInMs: times.fetchMs,
      maxBytesPerPartition: fetchBytes.partition,
      maxBytes: fetchBytes.all,
      metadataMaxAge: times.metadataMs,
      allowAutoTopicCreation: false,
      partitionAssigners: [stickyAssigner(() => deps.owned())],
      retry: consumerRetry,
    });
  }

  /** Joins the group; resolves after the first `onAssigned`. @throws {BusUnavailableError} when that fails */
  async join(): Promise<void> {
    const { topic, times } = this.#deps;
    const joined = this.#listen();
    const work = async (): Promise<void> => {
      await this.#consumer.connect();
      // Where a group has no offset, the subscription seeks: this counts only for what retention has deleted.
      await this.#consumer.subscribe({ topics: [topic], fromBeginning: true });
      await this.#consumer.run({
        autoCommit: false,
        eachBatch: (payload) => this.#deps.onBatch(payload.batch, () => payload.isStale(), this),
      });
      const failure = await Promise.race([joined, this.ended]);
      if (failure) throw failure;
    };
    // Others may have to be missed first.
    const patienceMs = times.requestMs + Math.max(times.rebalanceMs, times.sessionMs);
    const giveUp = (): never => {
      throw new BusUnavailableError('the group could not be joined in time');
    };
    try {
      await within(patienceMs, work(), giveUp);
    } catch (error) {
      const failure = toBusError(error);
      this.end(failure);
      throw failure;
    }
  }

  /** Ends it, for a reason. Nothing of it is delivered any more; close it nevertheless. */
  end(reason: Error): void {
    clearInterval(this.#watch);
    this.#ended.resolve(reason);
  }

  pause(partition: number): void {
    this.#steer(() => this.#consumer.pause([{ topic: this.#deps.topic, partitions: [partition] }]));
  }

  resume(partition: number): void {
    this.#steer(() => this.#consumer.resume([{ topic: this.#deps.topic, partitions: [partition] }]));
  }

  /** Goes on reading a partition at this offset; what was fetched of it before is dropped. */
  seek(partition: number, offset: number): void {
    const { topic } = this.#deps;
    this.#steer(() => this.#consumer.seek({ topic, partition, offset: String(offset) }));
  }

  /**
   * Commits offsets as a member of the group's present generation. One call at a time.
   *
   * @throws what kafkajs throws; {BusUnavailableError} when it did nothing
   */
  async commit(commits: readonly { partition: number; next: number }[]): Promise<void> {
    // kafkajs resolves, having done nothing, when its consumer is not running: only the event tells.
    const seen = { committed: false };
    const stopListening = this.#consumer.on(this.#consumer.events.COMMIT_OFFSETS, () => {
      seen.committed = true;
    });
    try {
      const { topic } = this.#deps;
      await this.#consumer.commitOffsets(
        commits.map(({ partition, next }) => ({ topic, partition, offset: String(next) })),
      );
    } finally {
      stopListening();
    }
    if (!seen.committed) throw new BusUnavailableError('the consumer is not running');
  }

  /** Leaves the group, if somebody listens, and breaks all connections. */
  async close(): Promise<void> {
    this.end(new BusUnavailableError('the consumer was closed'));
    const { farewellMs } = this.#deps.times;
    await within(farewellMs, this.#consumer.disconnect(), () => undefined).catch(() => undefined);
    this.#client.sever();
  }

  /** kafkajs refuses to steer a consumer that has stopped: then there is nothing to steer. */
  #steer(turn: () => void): void {
    try {
      turn();
    } catch (error) {
      this.#deps.logger.debug({ err: error }, 'the consumer has stopped');
    }
  }

  /** Resolves at the first assignment. */
  #listen(): Promise<undefined> {
    const consumer = this.#consumer;
    const { events } = consumer;
    const { times, topic } = this.#deps;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    consumer.on(events.GROUP_JOIN, ({ payload }) => {
      this.#heard(times.sessionMs);
      this.#deps.onAssigned(payload.memberAssignment[topic] ?? [], this);
      resolve(undefined);
    });
    consumer.on(events.HEARTBEAT, () => this.#heard(times.sessionMs));
    // The group waits for all its members meanwhile, without heartbeats, and gives nobody's partitions away.
    consumer.on(events.REBALANCING, () => this.#heard(times.rebalanceMs + times.requestMs));
    consumer.on(events.CRASH, ({ payload }) => this.end(toBusError(payload.error)));
    this.#watch = setInterval(() => {
      if (this.#patientUntil === 0 || performance.now() < this.#patientUntil) return;
      this.end(new BusUnavailableError('nothing was heard of the group for a session'));
    }, times.heartbeatMs);
    return promise;
  }

  #heard(patienceMs: number): void {
    this.#patientUntil = performance.now() + patienceMs;
  }
}
