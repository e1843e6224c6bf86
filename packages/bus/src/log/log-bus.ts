import { randomUUID } from 'node:crypto';
import { type Clock, type Logger } from '@millrace/platform';
import { type Bus, BusRequestError, type OutgoingMessage, type Subscription } from '../bus.ts';
import { placeMessages } from '../message.ts';
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
  const subscriptions = new Set<LogSubscription>();
  const times = { ...defaultTimes, ...options.times };
  let closing: Promise<void> | undefined;

  const assertOpen = (): void => {
    if (closing) throw new BusRequestError('closed', 'the bus is closed');
  };

  const publish = async (batch: readonly OutgoingMessage[]): Promise<void> => {
    assertOpen();
    const placed = await placeMessages(batch, (topic) => store.partitions(topic));
    if (placed.length > 0) await store.append(placed);
  };

  const subscribe: Bus['subscribe'] = async (group, topic, handler, subscribeOptions = {}) => {
    assertOpen();
    await store.partitions(topic);
    const member = { id: `${bootId}-${randomUUID()}`, group, topic };
    const subscription = await LogSubscription.open(
      { store, clock, logger, times },
      member,
      handler,
      subscribeOptions,
    );
    subscriptions.add(subscription);
    const close = async (): Promise<void> => {
      await subscription.close();
      subscriptions.delete(subscription);
    };
    if (isClosing()) {
      await close();
      assertOpen();
    }
    return { assigned: () => subscription.assigned(), close } satisfies Subscription;
  };

  const isClosing = (): boolean => closing !== undefined;

  const closeAll = async (): Promise<void> => {
    await Promise.all([...subscriptions].map((subscription) => subscription.close()));
    await store.close();
  };

  return {
    publish,
    subscribe,
    lag: async (group, topic) => {
      assertOpen();
      return store.lag(group, topic);
    },
    partitions: async (topic) => {
      assertOpen();
      return store.partitions(topic);
    },
    close: () => (closing ??= closeAll()),
  };
}
