import { randomUUID } from 'node:crypto';
import { type Clock, type Logger, silentLogger, systemClock } from '@millrace/platform';
import { type Bus, type BusMessage } from '../bus.ts';
import { createLogBus } from '../log/log-bus.ts';
import { type SubscriptionTimes } from '../log/subscription.ts';
import { shippedPartitions } from '../topics.ts';
import { MemoryLog } from './memory-log.ts';

export interface MemoryBusOptions {
  /** Topics and their partitions; unless told those of the contract and their dead twins. */
  topics?: Readonly<Record<string, number>>;
  clock?: Clock;
  logger?: Logger;
  times?: Partial<SubscriptionTimes>;
}

export interface MemoryBus extends Bus {
  /** Everything published to a topic so far, partition after partition: for tests to look at. */
  read(topic: string): BusMessage[];
}

/**
 * The bus of unit tests: no server, the rules of the others. Every `subscribe` is a member of its own, so that
 * one bus can play a whole group. Close it: its members hold timers.
 */
export function createMemoryBus(options: MemoryBusOptions = {}): MemoryBus {
  const { clock = systemClock, logger = silentLogger, topics = shippedPartitions(), times = {} } = options;
  const store = new MemoryLog(clock, topics);
  return {
    ...createLogBus({ store, bootId: randomUUID(), clock, logger, times }),
    read: (topic) =>
      store.read(topic).map((message) => ({ ...message, topic, offset: String(message.offset) })),
  };
}
