import { type Clock, type Logger } from '@millrace/platform';
import { BusUnavailableError, type Handler, type SubscribeOptions, type Subscription } from '../bus.ts';
import { OffsetCommitter, type OffsetCommit } from '../delivery/offset-committer.ts';
import { PartitionReader, type ReaderDeps, type StoredMessage } from '../delivery/partition-reader.ts';
import { reportGap } from '../delivery/report-gap.ts';
import { Slots } from '../delivery/slots.ts';
import { sleepUnlessAborted } from '../delivery/wakeup.ts';
import { type KafkaClient } from './client.ts';
import { type KafkaCluster, type Position } from './cluster.ts';
import { protocolError, toBusError } from './errors.ts';
import { type FetchedBatch, type GroupConsumer } from './group-consumer.ts';
import { GroupMember } from './group-member.ts';
import { toStoredMessage } from './stored-message.ts';
import { type KafkaTimes } from './times.ts';
import { within } from './within.ts';

export interface SubscriptionDeps {
  open: () => KafkaClient;
  cluster: KafkaCluster;
  clock: Clock;
  logger: Logger;
  times: KafkaTimes;
}

/** What is read ahead of a partition's handler. */
const readAhead = { messages: 1_024, bytes: 1_048_576 };

/** Commits of a generation that is over, or that nobody may commit in: the next one decides whose they are. */
const betweenGenerations = new Set(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID']);

/**
 * Delivers what a member of a group fetches, partition by partition. Handlers never hold kafkajs up: it goes on
 * fetching, into bounded buffers, and sends its heartbeats while they work for minutes.
 *
 * After each rebalance the group's committed offsets are read again. A partition that stayed and that nobody else
 * has handled messages of goes on undisturbed, its handler included; any other starts anew at the group's offset.
 */
export class KafkaSubscription implements Subscription {
  readonly topic: string;
  readonly groupId: string;
  readonly #deps: SubscriptionDeps;
  readonly #options: SubscribeOptions;
  readonly #committer: OffsetCommitter;
  readonly #readerDeps: ReaderDeps;
  readonly #readers = new Map<number, PartitionReader>();
  /** The last reader of each partition that this member had: the next one starts after its end. */
  readonly #past = new Map<number, PartitionReader>();
  readonly #paused = new Set<number>();
  readonly #ended = new AbortController();
  readonly #member: GroupMember;
  /** Counts assignments: what belongs to an earlier one is void. */
  #assignment = 0;
  /** The last assignment that the readers were made to fit. */
  #adopted = 0;
  /** Resolves when they fit the present one, or never will. */
  #adopting: Promise<void> = Promise.resolve();
  /** Resolves when an assignment was adopted. */
  #change = Promise.withResolvers<undefined>();
  #closing: Promise<void> | undefined;
  #committing: Promise<void> = Promise.resolve();

  private constructor(
    deps: SubscriptionDeps,
    of: { groupId: string; topic: string },
    handler: Handler,
    options: SubscribeOptions,
  ) {
    const logger = deps.logger.child({ group: of.groupId, topic: of.topic });
    this.groupId = of.groupId;
    this.topic = of.topic;
    this.#deps = { ...deps, logger };
    this.#options = options;
    this.#committer = new OffsetCommitter((commits) => this.#write(commits));
    this.#readerDeps = {
      topic: of.topic,
      handler,
      pause: options.pause,
      slots: new Slots(Math.max(1, options.concurrency ?? 1)),
      committer: this.#committer,
      clock: deps.clock,
      logger,
      onHungry: () => this.#resumeHungry(),
      capacity: readAhead,
    };
    this.#member = new GroupMember({
      ...this.#deps,
      ...of,
      owned: () => this.assigned(),
      onAssigned: (partitions, consumer) => this.#onAssigned(partitions, consumer),
      onBatch: (batch, isStale, consumer) => this.#onBatch(batch, isStale, consumer),
      settled: () => this.#settled(),
      onLost: () => this.#loseAll(),
    });
  }

  /** Joins the group and starts to deliver. @throws {BusUnavailableError} when the group cannot be joined */
  static async open(
    deps: SubscriptionDeps,
    of: { groupId: string; topic: string },
    handler: Handler,
    options: SubscribeOptions,
  ): Promise<KafkaSubscription> {
    const subscription = new KafkaSubscription(deps, of, handler, options);
    await subscription.#member.open();
    subscription.#committing = subscription.#keepCommitted();
    return subscription;
  }

  assigned(): readonly number[] {
    return this.#closing ? [] : [...this.#readers.keys()].sort((a, b) => a - b);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { times } = this.#deps;
    const readers = [...this.#readers.values(), ...this.#past.values()];
    for (const reader of readers) reader.stop();
    // The membership goes on meanwhile: a handler that needs its time keeps its partition.
    await within(times.handoverMs, Promise.all(readers.map((reader) => reader.done)), () => {
      this.#deps.logger.error({}, 'a handler did not end after its abort; its partition is given away');
      return [];
    });
    await within(times.farewellMs, this.#committer.flush(), () => undefined).catch(() => undefined);
    this.#loseAll();
    this.#ended.abort();
    await this.#committing;
    await this.#member.close();
  }

  /** Resolves when the readers fit an assignment that still holds. */
  async #settled(): Promise<void> {
    while (this.#adopted !== this.#assignment) await this.#change.promise;
  }

  /** Writes, now and then, what could not be written when it was due. */
  async #keepCommitted(): Promise<void> {
    const { clock, times } = this.#deps;
    while (await sleepUnlessAborted(clock, times.sweepMs, this.#ended.signal)) {
      await this.#committer.flush().catch(() => undefined);
    }
  }

  #onAssigned(partitions: readonly number[], consumer: GroupConsumer): void {
    if (consumer !== this.#member.consumer) return;
    this.#assignment += 1;
    for (const reader of this.#readers.values()) {
      if (!partitions.includes(reader.partition)) this.#lose(reader);
    }
    this.#adopting = this.#adopt(consumer, partitions);
  }

  /** Makes the readers match an assignment. Never rejects: what it cannot do ends the consumer. */
  async #adopt(consumer: GroupConsumer, partitions: readonly number[]): Promise<void> {
    const assignment = this.#assignment;
    const isVoid = (): boolean => assignment !== this.#assignment || consumer !== this.#member.consumer;
    try {
      const positions = await this.#deps.cluster.positions(this.groupId, this.topic);
      if (isVoid()) return;
      const mine = partitions.map((partition) => ({ partition, position: positionIn(positions, partition) }));
      await this.#pinTail(consumer, mine);
      if (isVoid()) return;
      for (const { partition, position } of mine) this.#place(consumer, partition, position);
      this.#deps.logger.info({ partitions: this.assigned() }, 'partitions assigned');
      this.#adopted = assignment;
      this.#announceChange();
    } catch (error) {
      if (!isVoid() && !isBetweenGenerations(error)) consumer.end(toBusError(error));
    }
  }

  /** A group that begins at the tail has its place there from now on, whoever has the partition next. */
  async #pinTail(
    consumer: GroupConsumer,
    mine: readonly { partition: number; position: Position }[],
  ): Promise<void> {
    if (this.#options.from !== 'latest') return;
    const pins = mine
      .filter(({ position }) => position.committed === undefined)
      .map(({ partition, position }) => ({ partition, next: position.high }));
    if (pins.length > 0) await consumer.commit(pins);
  }

  #place(consumer: GroupConsumer, partition: number, { committed, low, high }: Position): void {
    let reader = this.#readers.get(partition);
    // Beyond what this member was given, others have handled messages.
    if (reader && committed !== undefined && committed > reader.seen) {
      this.#lose(reader);
      reader = undefined;
    }
    if (!reader && !this.#closing) {
      const past = this.#past.get(partition);
      const offset = Math.max(low, committed ?? (this.#options.from === 'latest' ? high : low));
      const passedBy = (committed !== undefined && low > committed) || (past && offset > past.seen);
      if (passedBy) this.#reportGap(partition);
      const position = { partition, epoch: this.#assignment, offset };
      reader = new PartitionReader(position, this.#readerDeps, past?.done);
      this.#readers.set(partition, reader);
    }
    if (!reader) return;
    consumer.seek(partition, reader.fetchFrom);
    if (!reader.full) this.#resume(partition);
  }

  async #onBatch(batch: FetchedBatch, isStale: () => boolean, consumer: GroupConsumer): Promise<void> {
    await this.#adopting;
    const { partition } = batch;
    const reader = this.#readers.get(partition);
    const isVoid = (): boolean =>
      consumer !== this.#member.consumer || isStale() || reader === undefined || reader.lost;
    const [first] = batch.messages;
    if (!reader || !first || isVoid()) return;
    // A hole is what compaction left, unless the log's beginning has passed it.
    if (Number(first.offset) > reader.fetchFrom) {
      const low = await this.#deps.cluster.low(this.topic, partition);
      if (isVoid()) return;
      if (low > reader.fetchFrom) this.#reportGap(partition);
    }
    const messages = batch.messages
      .map(toStoredMessage)
      .filter((message: StoredMessage) => message.offset >= reader.fetchFrom);
    reader.push(messages, Math.max(reader.fetchFrom, Number(batch.lastOffset()) + 1));
    if (!reader.full) return;
    this.#paused.add(partition);
    consumer.pause(partition);
  }

  #resumeHungry(): void {
    for (const partition of this.#paused) {
      if (this.#readers.get(partition)?.wantsMore ?? true) this.#resume(partition);
    }
  }

  #resume(partition: number): void {
    this.#paused.delete(partition);
    this.#member.consumer.resume(partition);
  }

  /**
   * Writes offsets of partitions that are still this member's. What a rebalance turns down is written once it is
   * over, if the partition stayed.
   */
  async #write(commits: readonly OffsetCommit[]): Promise<ReadonlySet<number>> {
    for (;;) {
      const assignment = this.#assignment;
      const { consumer } = this.#member;
      const mine = commits.filter(({ partition, epoch }) => this.#readers.get(partition)?.epoch === epoch);
      if (mine.length === 0) return new Set();
      try {
        await consumer.commit(mine);
        return new Set(mine.map(({ partition }) => partition));
      } catch (error) {
        if (!isBetweenGenerations(error)) throw toBusError(error);
      }
      while (assignment === this.#assignment || this.#adopted !== this.#assignment) {
        const failure = await Promise.race([this.#change.promise, consumer.ended]);
        if (failure) throw toBusError(failure);
      }
    }
  }

  #lose(reader: PartitionReader): void {
    reader.lose();
    this.#readers.delete(reader.partition);
    this.#past.set(reader.partition, reader);
  }

  #loseAll(): void {
    this.#assignment += 1;
    this.#paused.clear();
    for (const reader of this.#readers.values()) this.#lose(reader);
  }

  #announceChange(): void {
    this.#change.resolve(undefined);
    this.#change = Promise.withResolvers();
  }

  #reportGap(partition: number): void {
    reportGap(this.#deps.logger, partition, this.#options.onGap);
  }
}

/** One that was just added may not be known to every broker: then this is tried again. */
function positionIn(positions: ReadonlyMap<number, Position>, partition: number): Position {
  const position = positions.get(partition);
  if (!position) throw new BusUnavailableError(`the brokers do not know partition ${partition} yet`);
  return position;
}

const isBetweenGenerations = (error: unknown): boolean => betweenGenerations.has(protocolError(error) ?? '');
