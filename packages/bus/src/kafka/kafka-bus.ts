import { type Clock, type Logger, type Metrics, systemClock } from '@millrace/platform';
import { type Bus, type OutgoingMessage } from '../bus.ts';
import { placeMessages, type PlacedMessage } from '../message.ts';
import { Publisher } from '../publisher.ts';
import { Subscriptions } from '../subscriptions.ts';
import { shippedTopics, type TopicSettings } from '../topics.ts';
import { createKafkaClient, type KafkaConnection } from './client.ts';
import { KafkaCluster, lagOf } from './cluster.ts';
import { ensureTopics, type TopicDifference } from './ensure-topics.ts';
import { exportLag } from './lag-gauge.ts';
import { KafkaSender } from './sender.ts';
import { KafkaSubscription } from './subscription.ts';
import { defaultTimes, type KafkaTimes } from './times.ts';
import { within } from './within.ts';

export interface KafkaBusOptions {
  connection: KafkaConnection;
  logger: Logger;
  metrics?: Metrics;
  clock?: Clock;
  /** Copies of each topic that `ensureTopics` makes. Default 1. */
  replication?: number;
  times?: Partial<KafkaTimes>;
}

export interface KafkaBus extends Bus {
  /**
   * Creates the topics that are missing (unless told, those of the contract and their dead twins), and answers, and
   * logs, in what those that are there differ from what they should be. Safe at any time, and from several places.
   */
  ensureTopics(topics?: Readonly<Record<string, TopicSettings>>): Promise<TopicDifference[]>;
}

/**
 * What goes into one send at most. All of a send for one partition is one record batch, which brokers refuse over
 * a topic's `max.message.bytes`.
 */
const sendLimits = { messages: 5_000, bytes: 786_432 };

/**
 * The distributed mode's bus: Apache Kafka. Connects when it is first needed and recovers by itself from whatever
 * the brokers go through. A group of the port is, for each topic, a consumer group `<topic>:<group>`.
 */
export function createKafkaBus({
  connection,
  logger,
  clock = systemClock,
  ...options
}: KafkaBusOptions): KafkaBus {
  const times = { ...defaultTimes, ...options.times };
  const open = (): ReturnType<typeof createKafkaClient> => createKafkaClient(connection, { logger, times });
  const cluster = new KafkaCluster(open, { clock, times });
  const sender = new KafkaSender({ open, logger, times });
  const publisher = new Publisher<PlacedMessage>((batch) => sender.send(batch), sendLimits);
  const subscriptions = new Subscriptions<KafkaSubscription>();

  const publish = async (batch: readonly OutgoingMessage[]): Promise<void> => {
    subscriptions.assertOpen();
    const placed = await placeMessages(batch, (topic) => cluster.partitions(topic));
    if (placed.length > 0) await publisher.publish(placed);
  };

  const subscribe: Bus['subscribe'] = async (group, topic, handler, subscribeOptions = {}) => {
    subscriptions.assertOpen();
    await cluster.partitions(topic);
    const of = { groupId: groupIdOf(group, topic), topic };
    const subscription = await KafkaSubscription.open(
      { open, cluster, clock, logger, times },
      of,
      handler,
      subscribeOptions,
    );
    return subscriptions.add(subscription);
  };

  const lagGauge = options.metrics && exportLag(options.metrics, { subscriptions, cluster, clock, times });

  const lag = async (group: string, topic: string): Promise<Map<number, number>> => {
    subscriptions.assertOpen();
    await cluster.partitions(topic);
    const positions = await cluster.positions(groupIdOf(group, topic), topic);
    return new Map([...positions].map(([partition, position]) => [partition, lagOf(position)]));
  };

  const end = async (): Promise<void> => {
    await lagGauge?.stop();
    await subscriptions.closeAll();
    await within(times.farewellMs, publisher.idle(), () => sender.sever());
    await Promise.all([sender.close(), cluster.close()]);
  };

  return {
    ensureTopics: async (topics = shippedTopics()) => {
      subscriptions.assertOpen();
      return ensureTopics(cluster, topics, { replication: options.replication ?? 1, logger });
    },
    publish,
    subscribe,
    lag,
    partitions: async (topic) => {
      subscriptions.assertOpen();
      return cluster.partitions(topic);
    },
    close: () => subscriptions.close(end),
  };
}

/** No topic has a colon in its name. kafkajs needs all members of a group to read the same topics. */
const groupIdOf = (group: string, topic: string): string => `${topic}:${group}`;
