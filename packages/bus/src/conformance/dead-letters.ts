import { expect, it } from '@jest/globals';
import { deadTopic } from '@millrace/contract';
import { silentLogger } from '@millrace/platform';
import { z } from 'zod';
import { consume } from '../consumer.ts';
import { replayDead } from '../dead-letters.ts';
import { type Bench, eventually, range, totalLag } from './harness.ts';

const order = z.object({ id: z.number() });

/** What becomes of messages that nobody can read. */
export function deadLetterTests(bench: Bench): void {
  it('parks them, goes on with those behind, and brings them back in their order when told', async () => {
    const topic = await bench.topic(1);
    const group = bench.group();
    const bus = await bench.bus();
    const handled: number[] = [];
    const headers: object[] = [];
    const start = (bias: number): ReturnType<typeof consume> =>
      consume(bus, {
        ...{ group, logger: silentLogger },
        // After the fix what was no order is one.
        topic: { name: topic, schema: bias === 0 ? order : z.union([order, z.object({ no: z.number() })]) },
        handle: (value, message) => {
          handled.push('id' in value ? value.id : bias + value.no);
          headers.push(message.headers);
          return Promise.resolve();
        },
      });
    const bodies = range(0, 10).map((n) => (n % 2 === 0 ? { id: n } : { no: n }));
    await bus.publish(bodies.map((value) => ({ topic, key: 'k', value, headers: { trace: 'kept' } })));
    const subscription = await start(0);
    await eventually('all to be handled or parked', async () => (await totalLag(bus, group, topic)) === 0);
    expect(handled).toEqual([0, 2, 4, 6, 8]);
    expect(await totalLag(bus, 'nobody', deadTopic(topic))).toBe(5);
    await subscription.close();

    await start(100);
    expect(await replayDead(bus, topic, { logger: silentLogger })).toEqual({ replayed: 5, skipped: 0 });
    await eventually('what was parked to be handled', () => handled.length === 10);
    expect(handled.slice(5)).toEqual([101, 103, 105, 107, 109]);
    expect(headers).toEqual(bodies.map(() => ({ trace: 'kept' })));
    // Once is enough.
    expect(await replayDead(bus, topic, { logger: silentLogger })).toEqual({ replayed: 0, skipped: 0 });
  });
}
