import { describe, expect, it } from '@jest/globals';
import { partitionOf } from './partitioner.ts';

/** Hashes from Kafka's own test of `Utils.murmur2`; the last four as kafkajs 2.2.4 computes them. */
const kafkaHashes: [key: string, hash: number][] = [
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
  ['', 275646681],
  ['é', 186971271],
  ['日本', -700811021],
  ['🎬', 1220782796],
];

describe('partitionOf', () => {
  it.each(kafkaHashes)('puts `%s` where Kafka puts it', (key, hash) => {
    // With as many partitions as there are non-negative numbers, the partition is the hash without its sign.
    expect(partitionOf(key, 0x7fffffff)).toBe((hash & 0x7fffffff) % 0x7fffffff);
    expect(partitionOf(key, 12)).toBe((hash & 0x7fffffff) % 12);
  });
});
