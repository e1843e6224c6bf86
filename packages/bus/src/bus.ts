/** Anything that survives `JSON.stringify` unchanged. */
export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue | undefined };

/** A message to publish. `partition` overrides the key's own partition (heartbeats need one on each). */
export interface OutgoingMessage {
  topic: string;
  key: string;
  value: JsonValue;
  headers?: Record<string, string>;
  partition?: number;
}

/** A message as a consumer sees it. `value` is unparsed: consumers validate it (see `consumer.ts`). */
export interface BusMessage {
  topic: string;
  partition: number;
  /** Position in the partition: an increasing integer, as a decimal string (may exceed 2^53). */
  offset: string;
  key: string;
  /** The body's raw text; normally JSON, but nothing guarantees that. */
  value: string;
  headers: Record<string, string>;
  /** When the bus took the message. */
  timestamp: Date;
}

export interface Delivery {
  /**
   * Commits this message's offset now, before the handler ends (claims commit, then work for minutes). The
   * message is then done: a handler that rejects afterwards is logged, not called again.
   *
   * @throws {BusUnavailableError} when the commit did not arrive or the partition was taken away meanwhile;
   *   the message will be delivered again
   */
  commit(): Promise<void>;
  /** Aborts when the partition is taken away or the subscription closes. */
  signal: AbortSignal;
}

/** Resolving commits the offset; rejecting redelivers the same message after a growing wait, order kept. */
export type Handler = (message: BusMessage, delivery: Delivery) => Promise<void>;

export interface SubscribeOptions {
  /** Where a group without a committed offset begins. Default `earliest`. `latest` is the tail. */
  from?: 'earliest' | 'latest';
  /**
   * Asked before each message: a promise holds the next delivery back until it resolves (no slot is free).
   * The group keeps its partitions meanwhile.
   */
  pause?: () => Promise<void> | undefined;
  /** Partitions handled at once; messages of one partition never overlap. Default 1. */
  concurrency?: number;
  /**
   * Called when messages of a partition passed this member by: retention deleted them unread, or others handled
   * them while it had lost the partition. Called before the next delivery.
   */
  onGap?: (partition: number) => void;
}

export interface Subscription {
  /** Partitions this member owns now. */
  assigned(): readonly number[];
  /** Stops delivery, waits for handlers in flight, leaves the group. */
  close(): Promise<void>;
}

/**
 * The transport between services (design.md, "The record and the transport"). At least once, ordered per
 * key, groups share partitions. Losing or repeating a message costs time, never truth.
 */
export interface Bus {
  /** Durable on all replicas when it resolves. Messages of one key keep their order in the batch. */
  publish(batch: readonly OutgoingMessage[]): Promise<void>;
  /** Resolves when the group has been joined; a `latest` subscriber sees everything published after that. */
  subscribe(
    group: string,
    topic: string,
    handler: Handler,
    options?: SubscribeOptions,
  ): Promise<Subscription>;
  /** Messages not yet committed by the group, per partition. */
  lag(group: string, topic: string): Promise<Map<number, number>>;
  /** Number of partitions of a topic. */
  partitions(topic: string): Promise<number>;
  close(): Promise<void>;
}

/** The caller's mistake: unknown topic, partition out of range, a message nobody can send. Not worth a retry. */
export class BusRequestError extends Error {
  override readonly name = 'BusRequestError';
  readonly code: 'unknown_topic' | 'invalid_partition' | 'invalid_message' | 'message_too_large' | 'closed';
  constructor(code: BusRequestError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The transport's fault: worth a retry. */
export class BusUnavailableError extends Error {
  override readonly name = 'BusUnavailableError';
  readonly code = 'bus_unavailable';
}
