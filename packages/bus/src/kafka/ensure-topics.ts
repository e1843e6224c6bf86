import { type Logger } from '@millrace/platform';
import kafkajs, { type ITopicConfig } from './kafkajs.ts';
import { maximumMessageBytes } from '../message.ts';
import { type TopicSettings } from '../topics.ts';
import { type KafkaCluster } from './cluster.ts';

/** A topic that is there and not as it should be. */
export interface TopicDifference {
  topic: string;
  /** `partitions`, `replication` or the name of a topic setting of Kafka. */
  setting: string;
  is: string;
  wanted: string;
}

/** The largest message with its headers and framing, and more: what we send is measured before. */
const maximumBatchBytes = 2 * maximumMessageBytes;
/**
 * Creates the topics that are missing, and compares those that are there. Nothing that is there is changed: more
 * partitions would move keys away from their order, and other settings may be somebody's decision.
 *
 * @param replication copies of each topic; all but one of them must have a message before it counts as published
 * @throws {BusUnavailableError}
 */
export async function ensureTopics(
  cluster: KafkaCluster,
  wanted: Readonly<Record<string, TopicSettings>>,
  { replication, logger }: { replication: number; logger: Logger },
): Promise<TopicDifference[]> {
  const there = new Set(await cluster.ask((admin) => admin.listTopics()));
  const missing = Object.entries(wanted).filter(([name]) => !there.has(name));
  if (missing.length > 0) {
    // Somebody else may create them at the same time: that is no failure. kafkajs would take it for one that the
    // broker which it asks next has yet to hear of them.
    await cluster.ask((admin) =>
      admin.createTopics({
        topics: missing.map(([topic, settings]) => topicOf(topic, settings, replication)),
        waitForLeaders: false,
      }),
    );
    await cluster.appeared(missing.map(([topic]) => topic));
  }
  logger.info({ created: missing.map(([name]) => name) }, 'topics ensured');
  const present = Object.fromEntries(Object.entries(wanted).filter(([name]) => there.has(name)));
  const differences = await compare(cluster, present, replication);
  for (const difference of differences) logger.warn({ ...difference }, 'a topic is not as it should be');
  return differences;
}

const configOf = (settings: TopicSettings, replication: number): Record<string, string> => ({
  'cleanup.policy': settings.compacted ? 'compact,delete' : 'delete',
  'retention.ms': String(settings.retentionMs),
  'max.message.bytes': String(maximumBatchBytes),
  'min.insync.replicas': String(Math.max(1, replication - 1)),
});

const topicOf = (topic: string, settings: TopicSettings, replication: number): ITopicConfig => ({
  topic,
  numPartitions: settings.partitions,
  replicationFactor: replication,
  configEntries: Object.entries(configOf(settings, replication)).map(([name, value]) => ({ name, value })),
});

async function compare(
  cluster: KafkaCluster,
  wanted: Readonly<Record<string, TopicSettings>>,
  replication: number,
): Promise<TopicDifference[]> {
  const names = Object.keys(wanted);
  if (names.length === 0) return [];
  const { topics } = await cluster.ask((admin) => admin.fetchTopicMetadata({ topics: names }));
  const { resources } = await cluster.ask((admin) =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: names.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
    }),
  );
  return Object.entries(wanted).flatMap(([topic, settings]) => {
    const partitions = topics.find(({ name }) => name === topic)?.partitions ?? [];
    const entries = resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? [];
    const is: Record<string, string> = {
      ...Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue])),
      partitions: String(partitions.length),
      replication: String(partitions[0]?.replicas.length ?? 0),
    };
    const should = {
      ...configOf(settings, replication),
      partitions: String(settings.partitions),
      replication: String(replication),
    };
    return Object.entries(should)
      .filter(([setting, value]) => sorted(is[setting] ?? '') !== sorted(value))
      .map(([setting, value]) => ({ topic, setting, is: is[setting] ?? '', wanted: value }));
  });
}

/** Kafka keeps lists in whatever order they were given. */
const sorted = (list: string): string => list.split(',').sort().join();
