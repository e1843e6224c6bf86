/**
 * Up to which instant the tail of the state topic is known to be read: having read a heartbeat proves that every
 * earlier commit of its partition was seen. All times are milliseconds since 1970 on this machine's clock.
 */
export interface TailProgress {
  /** A heartbeat was read: every commit on this partition before `atMs` (database time) was seen. */
  heartbeat(partition: number, atMs: number, nowMs: number): void;
  /** The topic has at least this many partitions; a new one counts from its first message on. */
  expectPartitions(count: number): void;
  /** The instant up to which all partitions are known to be read; -Infinity before that is known. */
  readUpToMs(): number;
}

export function createTailProgress(): TailProgress {
  let latest: number[] = [];
  let readUpTo = -Infinity;
  const settle = (): void => {
    readUpTo = latest.length === 0 ? -Infinity : Math.min(...latest);
  };
  return {
    heartbeat(partition, atMs, nowMs) {
      // A heartbeat read late proves only what was committed before it was made; a database clock that is ahead
      // proves nothing of the future.
      const proven = Math.min(atMs, nowMs);
      const before = Math.min(latest[partition] ?? -Infinity, nowMs);
      latest[partition] = Math.max(before, proven);
      settle();
    },
    expectPartitions(count) {
      if (count <= latest.length) return;
      latest = Array.from({ length: count }, (_, partition) => latest[partition] ?? -Infinity);
      settle();
    },
    readUpToMs: () => readUpTo,
  };
}
