import { randomUUID } from 'node:crypto';
import { type Clock, type Logger } from '@millrace/platform';
import { type Bus, type OutgoingMessage } from '../bus.ts';
import { placeMessages } from '../message.ts';
import { Subscriptions } from '../subscriptions.ts';
import { type LogStore } from './log-store.ts';
import { LogSubscription, type SubscriptionTimes } from './subscription.ts';

export interface LogBusOptions {
  store: LogStore;
  /** This process's run; member ids start with it. */
  bootId: string;
  clock: Clock;
  logger: Logger;
  times?: Partial<SubscriptionTimes>;
}

const defaultTimes: SubscriptionTimes = { leaseMs: 10_000, sweepMs: 1_000, handoverMs: 30_000 };

/** A `Bus` over an append-only log. Closing it closes its subscriptions, then the log. */
export function createLogBus({ store, bootId, clock, logger, ...options }: LogBusOptions): Bus {
  const subscriptions = new Subscriptions<LogSubscription>();
  const times = { ...defaultTimes, ...options.times };

  const publish = async (batch: readonly OutgoingMessage[]): Promise<void> => {
    subscriptions.assertOpen();
    const placed = await placeMessages(batch, (topic) => store.partitions(topic));
    if (placed.length > 0) await store.append(placed);
  };

  const subscribe: Bus['subscribe'] = async (group, topic, handler, subscribeOptions = {}) => {
    subscriptions.assertOpen();
    await store.partitions(topic);
    const member = { id: `${bootId}-${randomUUID()}`, group, topic };
    const subscription = await LogSubscription.open(
      { store, clock, logger, times },
      member,
      handler,
      subscribeOptions,
    );
    return subscriptions.add(subscription);
  };

  const end = async (): Promise<void> => {
    await subscriptions.closeAll();
    await store.close();
  };

  return {
    publish,
    subscribe,
    lag: async (group, topic) => {
      subscriptions.assertOpen();
      return store.lag(group, topic);
    },
    partitions: async (topic) => {
      subscriptions.assertOpen();
      return store.partitions(topic);
    },
    close: () => subscriptions.close(end),
  };
}
