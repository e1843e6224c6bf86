/** How long what may take at most, in milliseconds. */
export interface KafkaTimes {
  /** Opening and authenticating a connection. */
  connectMs: number;
  /** One request. */
  requestMs: number;
  /** A publish with all its tries. */
  publishMs: number;
  /** A member that sends no heartbeat for so long is taken for dead by the group, and takes itself for it. */
  sessionMs: number;
  heartbeatMs: number;
  /** How long a rebalance waits for members that are alive to join again. */
  rebalanceMs: number;
  /** How long a fetch waits at the broker for something new. */
  fetchMs: number;
  /** How long a handler may go on after its signal aborted before its subscription closes regardless. */
  handoverMs: number;
  /** Saying goodbye to a broker that may not listen any more. */
  farewellMs: number;
  /** Between two tries to commit what could not be committed when it was due. */
  sweepMs: number;
  /** Between two looks at the lag, for its metric. */
  lagMs: number;
  /** For how long a topic's number of partitions is remembered. */
  metadataMs: number;
}

export const defaultTimes: KafkaTimes = {
  connectMs: 5_000,
  requestMs: 10_000,
  publishMs: 20_000,
  sessionMs: 15_000,
  heartbeatMs: 1_000,
  rebalanceMs: 15_000,
  fetchMs: 250,
  handoverMs: 30_000,
  farewellMs: 5_000,
  sweepMs: 5_000,
  lagMs: 15_000,
  metadataMs: 300_000,
};
