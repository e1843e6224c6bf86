import { deadTopic, topics } from '@millrace/contract';

/** How a topic is kept. */
export interface TopicSettings {
  partitions: number;
  /** How long a message is kept, in milliseconds. */
  retentionMs: number;
  /** True when only the last message of each key need be kept: each says all there is to say of its key. */
  compacted: boolean;
}

const dayMs = 86_400_000;
/** Longer than any consumer is away. What is lost beyond it the record still knows, but for usage. */
const retentionMs = 7 * dayMs;
/** Until somebody has mended what could not read them. */
const deadRetentionMs = 30 * dayMs;
const compacted = new Set<string>([topics.playbackState.name]);

/** Every topic of the contract and its dead twin. A twin keeps its original's partition of a key. */
export const shippedTopics = (): Record<string, TopicSettings> =>
  Object.fromEntries(
    Object.values(topics).flatMap(({ name, partitions }) => [
      [name, { partitions, retentionMs, compacted: compacted.has(name) }],
      [deadTopic(name), { partitions, retentionMs: deadRetentionMs, compacted: false }],
    ]),
  );

/** The same by their number of partitions alone, for adapters that keep all topics alike. */
export const shippedPartitions = (): Record<string, number> =>
  Object.fromEntries(Object.entries(shippedTopics()).map(([name, { partitions }]) => [name, partitions]));
