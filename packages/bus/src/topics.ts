import { deadTopic, topics } from '@millrace/contract';

/** Every topic of the contract and its dead twin, with their partitions. A twin keeps its original's partition of a key. */
export const shippedTopics = (): Record<string, number> =>
  Object.fromEntries(
    Object.values(topics).flatMap(({ name, partitions }) => [
      [name, partitions],
      [deadTopic(name), partitions],
    ]),
  );
