import { type Clock, type Logger } from '@millrace/platform';
import { type Handler, type SubscribeOptions, type Subscription } from '../bus.ts';
import {
  type LogEvent,
  type LogMessage,
  type LogStore,
  type Member,
  type PartitionState,
} from './log-store.ts';
import { OffsetCommitter } from '../delivery/offset-committer.ts';
import { PartitionReader, type ReaderDeps } from '../delivery/partition-reader.ts';
import { reportGap } from '../delivery/report-gap.ts';
import { shareOf } from './share.ts';
import { Slots } from '../delivery/slots.ts';
import { sleepUnlessAborted, Wakeup } from '../delivery/wakeup.ts';

export interface SubscriptionTimes {
  /** How long a member may be silent before others take its partitions, in milliseconds. */
  leaseMs: number;
  /** How often a member renews its lease and looks at the log though nothing woke it, in milliseconds. */
  sweepMs: number;
  /** How long a handler may go on after its signal aborted before its partition is given away regardless. */
  handoverMs: number;
}

export interface SubscriptionDeps {
  store: LogStore;
  clock: Clock;
  logger: Logger;
  times: SubscriptionTimes;
}

/** Read ahead per partition: enough to keep a fast handler busy, small enough for a dozen partitions. */
const readAhead = { messages: 256, bytes: 1_048_576 };
const fetchRetryMs = 500;

/**
 * One member of a group. Its beat renews the lease, sees what changed and moves the member towards its share of
 * the partitions; its feed fills the readers, which deliver.
 */
export class LogSubscription implements Subscription {
  readonly #deps: SubscriptionDeps;
  readonly #member: Member;
  readonly #from: 'earliest' | 'latest';
  readonly #onGap: (partition: number) => void;
  readonly #committer: OffsetCommitter;
  readonly #readerDeps: ReaderDeps;
  readonly #readers = new Map<number, PartitionReader>();
  /** The last reader of each partition that this member had: the next one starts after its end. */
  readonly #past = new Map<number, PartitionReader>();
  readonly #handingOver = new Set<number>();
  readonly #beatWakeup = new Wakeup();
  readonly #feedWakeup = new Wakeup();
  readonly #ended = new AbortController();
  #leaseEndsAt = 0;
  #available = true;
  #closing: Promise<void> | undefined;
  #loops: Promise<unknown> = Promise.resolve();
  #unlisten = (): void => undefined;

  private constructor(deps: SubscriptionDeps, member: Member, handler: Handler, options: SubscribeOptions) {
    const logger = deps.logger.child({ group: member.group, topic: member.topic });
    this.#deps = { ...deps, logger };
    this.#member = member;
    this.#from = options.from ?? 'earliest';
    this.#onGap = (partition) => reportGap(logger, partition, options.onGap);
    this.#committer = new OffsetCommitter((commits) => deps.store.commit(member, commits));
    this.#readerDeps = {
      topic: member.topic,
      handler,
      pause: options.pause,
      slots: new Slots(Math.max(1, options.concurrency ?? 1)),
      committer: this.#committer,
      clock: deps.clock,
      logger,
      onHungry: () => this.#feedWakeup.wake(),
      capacity: readAhead,
    };
  }

  /** Joins the group and starts to deliver. @throws {BusUnavailableError} when the log cannot be reached */
  static async open(
    deps: SubscriptionDeps,
    member: Member,
    handler: Handler,
    options: SubscribeOptions,
  ): Promise<LogSubscription> {
    const subscription = new LogSubscription(deps, member, handler, options);
    subscription.#unlisten = deps.store.listen((event) => subscription.#hear(event));
    try {
      await subscription.#join();
      await subscription.#beat();
    } catch (error) {
      subscription.#unlisten();
      for (const reader of subscription.#readers.values()) reader.lose();
      await deps.store.leave(member).catch(() => undefined);
      throw error;
    }
    subscription.#loops = Promise.all([
      subscription.#keepBeating(),
      subscription.#keepFeeding(),
      subscription.#guardLease(),
    ]);
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
    const readers = [...this.#readers.values(), ...this.#past.values()];
    for (const reader of readers) reader.stop();
    // The beat goes on meanwhile: a handler that needs its time keeps its partition.
    await this.#settled(readers);
    await this.#committer.flush().catch(() => undefined);
    for (const reader of readers) reader.lose();
    this.#ended.abort();
    this.#beatWakeup.wake();
    this.#feedWakeup.wake();
    this.#unlisten();
    await this.#loops;
    try {
      await this.#deps.store.leave(this.#member);
      this.#deps.store.announce(this.#member);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'could not leave the group; its lease will run out');
    }
  }

  /** Waits until no handler runs, but not longer than the hand-over time. */
  async #settled(readers: readonly PartitionReader[]): Promise<void> {
    const timer = new AbortController();
    const expired = sleepUnlessAborted(this.#deps.clock, this.#deps.times.handoverMs, timer.signal);
    const done = Promise.all(readers.map((reader) => reader.done)).then(() => false);
    if (await Promise.race([done, expired])) {
      this.#deps.logger.error({}, 'a handler did not end after its abort; its partition is given away');
    }
    timer.abort();
  }

  #hear({ topic, group }: LogEvent): void {
    if (topic !== undefined && topic !== this.#member.topic) return;
    if (topic === undefined || group === this.#member.group) this.#beatWakeup.wake();
    if (group !== undefined) return;
    for (const reader of this.#readers.values()) reader.stale = true;
    this.#feedWakeup.wake();
  }

  async #join(): Promise<void> {
    await this.#deps.store.join(this.#member, this.#from, this.#deps.times.leaseMs);
    this.#deps.store.announce(this.#member);
  }

  async #keepBeating(): Promise<void> {
    for (;;) {
      await this.#beatWakeup.waitFor(this.#deps.times.sweepMs, this.#deps.clock);
      if (this.#ended.signal.aborted) return;
      try {
        await this.#beat();
        this.#reportAvailable();
      } catch (error) {
        this.#reportUnavailable(error);
      }
    }
  }

  /** Lets nothing be delivered once the lease has run out unrenewed: another member may own it all by now. */
  async #guardLease(): Promise<void> {
    const { clock } = this.#deps;
    while (!this.#ended.signal.aborted) {
      const leftMs = this.#leaseEndsAt - clock.now().getTime();
      if (leftMs <= 0 && this.#readers.size > 0) {
        this.#deps.logger.warn({}, 'the lease ran out unrenewed');
        this.#loseAll();
      }
      await sleepUnlessAborted(clock, leftMs > 0 ? leftMs : this.#deps.times.sweepMs, this.#ended.signal);
    }
  }

  async #beat(): Promise<void> {
    const { store, clock, times } = this.#deps;
    const sentAt = clock.now().getTime();
    let members = await store.renew(this.#member, times.leaseMs);
    if (members === undefined) {
      this.#deps.logger.warn({}, 'evicted from the group; joining again');
      this.#loseAll();
      await this.#join();
      members = await store.renew(this.#member, times.leaseMs);
    }
    this.#leaseEndsAt = sentAt + times.leaseMs;
    const states = await store.survey(this.#member);
    const share = shareOf(this.#member.id, members ?? [], states.length);
    this.#adopt(await this.#claimUpTo(share, states));
    if (!this.#closing) this.#handOverDownTo(share);
    await this.#committer.flush();
  }

  async #claimUpTo(share: number, states: PartitionState[]): Promise<PartitionState[]> {
    const mine = states.filter((state) => state.owner === this.#member.id).length;
    const free = states.filter((state) => state.owner === null).length;
    const wanted = Math.min(share - mine, free);
    if (this.#closing || wanted <= 0 || (await this.#deps.store.claim(this.#member, wanted)) === 0)
      return states;
    return this.#deps.store.survey(this.#member);
  }

  /** Makes the readers match what the log says this member owns. */
  #adopt(states: readonly PartitionState[]): void {
    const before = this.assigned().join();
    for (const state of states) {
      const owned = state.owner === this.#member.id;
      let reader = this.#readers.get(state.partition);
      if (reader && (!owned || reader.epoch !== state.epoch)) {
        this.#lose(reader);
        reader = undefined;
      }
      if (owned && !reader && !this.#closing && !this.#handingOver.has(state.partition)) this.#start(state);
      else if (reader && state.end > reader.fetchFrom) reader.stale = true;
    }
    this.#feedWakeup.wake();
    const now = this.assigned();
    if (now.join() !== before) this.#deps.logger.info({ partitions: now }, 'partitions assigned');
  }

  #start(state: PartitionState): void {
    const past = this.#past.get(state.partition);
    const offset = Math.max(state.committed, state.first);
    const { partition, epoch } = state;
    if (offset > state.committed || (past && offset > past.seen)) this.#onGap(partition);
    this.#readers.set(
      partition,
      new PartitionReader({ partition, epoch, offset }, this.#readerDeps, past?.done),
    );
  }

  #lose(reader: PartitionReader): void {
    reader.lose();
    this.#readers.delete(reader.partition);
    this.#past.set(reader.partition, reader);
  }

  #loseAll(): void {
    for (const reader of this.#readers.values()) this.#lose(reader);
  }

  #handOverDownTo(share: number): void {
    const excess = [...this.#readers.values()].slice(share);
    for (const reader of excess) {
      this.#readers.delete(reader.partition);
      this.#past.set(reader.partition, reader);
      this.#handingOver.add(reader.partition);
      void this.#handOver(reader);
    }
  }

  /** Ends a reader, commits what it finished, and sets its partition free. */
  async #handOver(reader: PartitionReader): Promise<void> {
    reader.stop();
    await this.#settled([reader]);
    try {
      await this.#committer.flush();
      reader.lose();
      await this.#deps.store.release(this.#member, [reader.partition]);
      this.#deps.store.announce(this.#member);
    } catch (error) {
      // It is still owned: the next beat takes it up again.
      this.#reportUnavailable(error);
    } finally {
      reader.lose();
      this.#handingOver.delete(reader.partition);
      this.#beatWakeup.wake();
    }
  }

  async #keepFeeding(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      const hungry = [...this.#readers.values()].filter((reader) => reader.wantsMore);
      if (hungry.length === 0) await this.#feedWakeup.wait();
      else await this.#feed(hungry);
    }
  }

  async #feed(hungry: readonly PartitionReader[]): Promise<void> {
    const wanted = hungry.map((reader) => ({ partition: reader.partition, offset: reader.fetchFrom }));
    for (const reader of hungry) reader.stale = false;
    try {
      const messages = await this.#deps.store.fetch(this.#member.topic, wanted, readAhead);
      const byPartition = Map.groupBy(messages, (message) => message.partition);
      for (const reader of hungry) this.#take(reader, byPartition.get(reader.partition) ?? []);
    } catch (error) {
      for (const reader of hungry) reader.stale = true;
      this.#reportUnavailable(error);
      await sleepUnlessAborted(this.#deps.clock, fetchRetryMs, this.#ended.signal);
    }
  }

  #take(reader: PartitionReader, messages: readonly LogMessage[]): void {
    const [first] = messages;
    const last = messages.at(-1);
    if (!first || !last) return;
    // Offsets have no gaps: a jump means that retention was faster than this reader.
    if (first.offset > reader.fetchFrom) this.#onGap(reader.partition);
    reader.push(messages, last.offset + 1);
    if (reader.fetchFrom < last.end) reader.stale = true;
  }

  #reportUnavailable(error: unknown): void {
    if (this.#available) this.#deps.logger.warn({ err: error }, 'the bus is unavailable');
    this.#available = false;
  }

  #reportAvailable(): void {
    if (!this.#available) this.#deps.logger.info({}, 'the bus is available again');
    this.#available = true;
  }
}
