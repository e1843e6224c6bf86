import { type OffsetCommit } from '../delivery/offset-committer.ts';
import { type StoredMessage } from '../delivery/partition-reader.ts';
import { type PlacedMessage } from '../message.ts';

/** One subscription's place in its group. */
export interface Member {
  /** Unique among all members that ever were. */
  id: string;
  group: string;
  topic: string;
}

/** A message as it lies in the log. */
export interface LogMessage extends StoredMessage {
  partition: number;
  /** The partition's next free offset when this was read: more is there to read below it. */
  end: number;
}

/** A partition as its group sees it. */
export interface PartitionState {
  partition: number;
  owner: string | null;
  /** Rises with every new owner. */
  epoch: number;
  /** Offset of the next message to handle. */
  committed: number;
  /** Offset of the first message that is still kept. */
  first: number;
  /** The next free offset. */
  end: number;
}

export interface FetchLimits {
  /** Messages per partition. */
  messages: number;
  /** Bytes of values per partition; the first message comes whatever its size. */
  bytes: number;
}

/**
 * Something to look at: new messages in the topic, or, with a group, a change among its members. Without a topic
 * anything may have happened: events were missed.
 */
export interface LogEvent {
  topic?: string;
  group?: string;
}

/**
 * A durable append-only log with groups, leases and offsets: what `createLogBus` makes a `Bus` of. A member
 * owns partitions while its lease lasts; whoever renews first after that evicts it and sets them free.
 * Every method throws `BusUnavailableError` when the log cannot be reached, and `BusRequestError`
 * (`unknown_topic`) for a topic that does not exist.
 */
export interface LogStore {
  /** Number of partitions of a topic. */
  partitions(topic: string): Promise<number>;
  /** Appends all or nothing of one call in the given order; durable when it resolves. */
  append(messages: readonly PlacedMessage[]): Promise<void>;
  /** Enters a group. Partitions that the group has no offset for begin at `from`. */
  join(member: Member, from: 'earliest' | 'latest', leaseMs: number): Promise<void>;
  /**
   * Extends the lease, evicts members whose lease has run out, and returns the ids of all living members in
   * the order of their joining; undefined when this member was evicted itself.
   */
  renew(member: Member, leaseMs: number): Promise<string[] | undefined>;
  /** Every partition of the topic with its owner in the group. */
  survey(member: Member): Promise<PartitionState[]>;
  /** Takes up to `count` partitions that nobody owns; returns how many it got. */
  claim(member: Member, count: number): Promise<number>;
  /** Sets owned partitions free. */
  release(member: Member, partitions: readonly number[]): Promise<void>;
  /** Leaves the group and sets everything free. */
  leave(member: Member): Promise<void>;
  /** Messages from the given offsets on, by rising offset within a partition. */
  fetch(
    topic: string,
    wanted: readonly { partition: number; offset: number }[],
    limits: FetchLimits,
  ): Promise<LogMessage[]>;
  /** Commits offsets; returns the partitions that this member still owned at that epoch. */
  commit(member: Member, commits: readonly OffsetCommit[]): Promise<ReadonlySet<number>>;
  /** Retained messages that the group has not committed, per partition. */
  lag(group: string, topic: string): Promise<Map<number, number>>;
  /** Calls back on events, most of the time and soon; nothing may depend on one. Returns the way to stop. */
  listen(listener: (event: LogEvent) => void): () => void;
  /** Tells the other members of the group to look at once. */
  announce(member: Member): void;
  close(): Promise<void>;
}
