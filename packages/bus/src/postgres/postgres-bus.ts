import { type Clock, type Logger, systemClock } from '@millrace/platform';
import { type Bus } from '../bus.ts';
import { createLogBus } from '../log/log-bus.ts';
import { type SubscriptionTimes } from '../log/subscription.ts';
import { shippedPartitions } from '../topics.ts';
import { openConnections } from './connections.ts';
import { PostgresLog } from './postgres-log.ts';
import { prune, type Pruned } from './retention.ts';
import * as sql from './statements.ts';

export interface PostgresBusOptions {
  connectionString: string;
  /** This process's run: what a crash left behind is known by another one. */
  bootId: string;
  logger: Logger;
  clock?: Clock;
  times?: Partial<SubscriptionTimes>;
}

export interface PostgresBus extends Bus {
  /**
   * Creates the topics that are missing (unless told, those of the contract and their dead twins) and adds
   * missing partitions. Safe at every start. A running process sees added partitions after its next start.
   */
  ensureTopics(topics?: Readonly<Record<string, number>>): Promise<void>;
  /**
   * Deletes messages published before `olderThan`, whether read or not, and the offsets of groups that had no
   * member for a day. Works in small batches; a call ends after a bounded number of them, the next goes on.
   */
  prune(olderThan: Date): Promise<Pruned>;
  /**
   * Frees at once what members of earlier boots still lease, instead of waiting until their leases run out. Only
   * for a process that knows itself alone on its database: others would have to join again.
   */
  evictOtherBoots(): Promise<void>;
}

/**
 * The embedded mode's bus: a durable log in the record's own PostgreSQL. Uses up to four connections and one
 * that listens; opens nothing before it is needed, and recovers by itself when the server comes back.
 */
export function createPostgresBus(options: PostgresBusOptions): PostgresBus {
  const { connectionString, bootId, logger, clock = systemClock, times = {} } = options;
  const connections = openConnections(connectionString, logger);
  const store = new PostgresLog({ connectionString, connections, bootId, clock, logger });
  return {
    ...createLogBus({ store, bootId, clock, logger, times }),
    ensureTopics: async (topics = shippedPartitions()) => {
      await connections.durable.run(sql.ensureTopics, [Object.keys(topics), Object.values(topics)]);
    },
    prune: (olderThan) => prune(connections.relaxed, olderThan),
    evictOtherBoots: async () => {
      await connections.relaxed.run(sql.evictOtherBoots, [bootId]);
    },
  };
}
