import { afterEach, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { createManualClock } from '@millrace/testing';
import { createWorkQueue } from './work-queue.ts';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});

function setUp() {
  const clock = createManualClock();
  const metrics = createMetrics({ service: 'reconciler' });
  const turns: { key: string; finish: (again: number | null) => void; fail: () => void }[] = [];
  const { add, loop } = createWorkQueue({
    ...{ name: 'things', clock, logger: silentLogger, metrics },
    work: (key) =>
      new Promise((resolve, reject) => {
        turns.push({ key, finish: resolve, fail: () => reject(new Error('not now')) });
      }),
  });
  const stopping = new AbortController();
  const running = loop.run(stopping.signal, () => undefined);
  ends.push(async () => {
    stopping.abort();
    for (const { finish } of turns) finish(null);
    await running;
  });
  const settle = () => clock.advance(0);
  return { clock, metrics, turns, add, settle, keys: () => turns.map(({ key }) => key) };
}

describe('a work queue', () => {
  it('has each item once, in one pair of hands, however often it is added', async () => {
    const { turns, add, settle, keys } = setUp();
    for (const key of ['a', 'b', 'a', 'a']) add(key);
    await settle();
    expect(keys()).toEqual(['a', 'b']);
    add('a');
    add('a');
    await settle();
    expect(keys()).toEqual(['a', 'b']);
    turns[0]?.finish(null);
    await settle();
    expect(keys()).toEqual(['a', 'b', 'a']);
    turns[2]?.finish(null);
    await settle();
    expect(keys()).toHaveLength(3);
  });

  it('works on eight at once', async () => {
    const { turns, add, settle, keys } = setUp();
    for (let n = 0; n < 10; n++) add(`item-${n}`);
    await settle();
    expect(keys()).toHaveLength(8);
    turns[3]?.finish(null);
    await settle();
    expect(keys()).toHaveLength(9);
  });

  it('shows what waits in it, whatever waits in the queue of another kind', async () => {
    const { metrics, add, settle } = setUp();
    for (let n = 0; n < 11; n++) add(`item-${n}`);
    await settle();
    createWorkQueue({
      ...{ name: 'others', clock: createManualClock(), logger: silentLogger, metrics },
      work: () => Promise.resolve(null),
    });
    const text = await metrics.render();
    expect(text).toMatch(/^millrace_kubernetes_queue_objects{kind="things",.*} 3$/m);
    expect(text).toMatch(/^millrace_kubernetes_queue_objects{kind="others",.*} 0$/m);
  });

  it('tries what failed again after waits that grow to a minute, and begins anew after a success', async () => {
    const { clock, turns, add, settle, keys } = setUp();
    add('a');
    await settle();
    const waits: number[] = [];
    for (let failure = 0; failure < 12; failure++) {
      turns.at(-1)?.fail();
      await clock.whenSleeping();
      const [before, from] = [keys().length, clock.now().getTime()];
      while (keys().length === before) await clock.advance(50);
      waits.push(clock.now().getTime() - from);
    }
    waits.forEach((wait, failure) => {
      const longest = Math.min(60_000, 100 * 2 ** failure);
      expect(wait).toBeGreaterThanOrEqual(longest / 2);
      expect(wait).toBeLessThanOrEqual(longest + 50);
    });
    turns.at(-1)?.finish(null);
    add('a');
    await settle();
    turns.at(-1)?.fail();
    await clock.whenSleeping();
    await clock.advance(100);
    expect(keys()).toHaveLength(15);
  });

  it('gives an item its next turn when it asks for one, or as soon as it is added', async () => {
    const { clock, turns, add, settle, keys } = setUp();
    add('a');
    await settle();
    turns[0]?.finish(5_000);
    await clock.whenSleeping();
    await clock.advance(4_999);
    expect(keys()).toHaveLength(1);
    await clock.advance(1);
    expect(keys()).toHaveLength(2);
    turns[1]?.finish(5_000);
    await clock.whenSleeping();
    add('a');
    await settle();
    expect(keys()).toHaveLength(3);
  });
});
