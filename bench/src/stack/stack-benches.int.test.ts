import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { missingForKafka } from '../../../dev/kafka/jars.ts';
import { describeWith } from '../../../dev/real-part.ts';
import { missingForS3 } from '../../../dev/s3/versitygw.ts';
import { type BenchStack, openBenchStack } from './bench-stack.ts';
import { withInspector } from './inspector.ts';
import { measureChanges } from './measure-changes.ts';
import { measureHolds } from './measure-holds.ts';
import { measureUploads } from './measure-uploads.ts';
import { showMemory, worstGrowth } from './show-memory.ts';

const patienceMs = 180_000;
const { signal } = new AbortController();

/** The benches of the stack in small: that they run and count right; how fast it is, is theirs to say. */
describeWith(missingForKafka() ?? missingForS3(), 'benches of the stack', () => {
  let stack: BenchStack;

  beforeAll(async () => {
    stack = await openBenchStack(signal, { NODE_OPTIONS: withInspector });
  }, 20 * 60_000);
  afterAll(() => (stack as BenchStack | undefined)?.close(), patienceMs);

  it(
    'times each change from its commit to the consumers of both topics',
    async () => {
      const rounds = [];
      const options = { perSecond: 50, seconds: 0.2, rounds: 1, signal };
      for await (const round of measureChanges(stack, options)) rounds.push(round);
      expect(rounds).toHaveLength(1);
      for (const { state, events, bare } of rounds) {
        // Those that were held in the end were lifted beside.
        expect(state.toConsumer.length).toBeGreaterThanOrEqual(10);
        expect(events.toConsumer).toHaveLength(state.toConsumer.length);
        expect(bare.toConsumer.length).toBeGreaterThanOrEqual(10);
        expect(state.toConsumer.every(Number.isFinite)).toBe(true);
      }
    },
    patienceMs,
  );

  it(
    'times each hold until the CDN refuses, and each lift until it plays',
    async () => {
      const { toRefusal, toPlaying, load } = await measureHolds(stack, {
        ...{ holds: 4, videos: 1, holdsPerSecond: 100, warmUpMs: 0 },
        ...{ viewersPerSecond: 20, apiPerSecond: 10, signal },
      });
      expect([toRefusal.length, toPlaying.length]).toEqual([4, 4]);
      expect(['200', '403']).toEqual(expect.arrayContaining(Object.keys(load['viewers']?.statuses ?? {})));
      expect(['200']).toEqual(expect.arrayContaining(Object.keys(load['api']?.statuses ?? {})));
    },
    patienceMs,
  );

  it(
    'samples the memory of each process while uploads start and clips go through',
    async () => {
      const { processes, starts, clips } = await measureUploads(stack, {
        ...{
          startsPerSecond: 10,
          seconds: 1,
          warmUpSeconds: 0,
          samplesPerMinute: 240,
          clipPauseMs: 100,
          signal,
        },
      });
      expect(processes.map(({ name }) => name).sort()).toEqual(
        Object.keys(stack.running.ready().pids).sort(),
      );
      for (const { name, heap } of processes) {
        expect([name, heap.length > 0]).toEqual([name, stack.running.services.has(name)]);
      }
      expect(['201']).toEqual(expect.arrayContaining(Object.keys(starts.statuses)));
      expect(clips).toBeGreaterThan(0);
      expect(showMemory(processes)).toHaveLength(processes.length);
      expect(worstGrowth(processes)).toMatch(/at most × \d+\.\d+ \(\w/);
    },
    patienceMs,
  );
});
