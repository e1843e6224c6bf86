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

  it('counts what it has to try again, from zero on', async () => {
    const { metrics, turns, add, settle } = setUp();
    const retries = async (): Promise<string | undefined> =>
      /^millrace_kubernetes_retries_total\{kind="things",.*\} (\d+)$/m.exec(await metrics.render())?.[1];
    expect(await retries()).toBe('0');
    add('a');
    await settle();
    turns[0]?.fail();
    await settle();
    expect(await retries()).toBe('1');
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

  it('does not cut the wait after a failure short when the item is added, nor its wait for its rate', async () => {
    const { clock, turns, add, settle, keys } = setUp();
    const failNext = async (): Promise<void> => {
      turns.at(-1)?.fail();
      await clock.whenSleeping();
    };
    add('a');
    await settle();
    for (let failure = 0; failure < 6; failure++) {
      await failNext();
      await clock.advance(100 * 2 ** failure);
    }
    add('a');
    await failNext();
    const before = keys().length;
    for (let edit = 0; edit < 30; edit++) {
      add('a');
      await clock.advance(100);
    }
    // At least half of 6.4 s.
    expect(keys()).toHaveLength(before);
    await clock.advance(3_400);
    expect(keys()).toHaveLength(before + 1);
  });

  it('answers whatever adds one item on and on with ten turns and then one a second, and others at once', async () => {
    const { clock, turns, add, settle, keys } = setUp();
    const turnsOf = (key: string): number => keys().filter((each) => each === key).length;
    const storm = async (ms: number): Promise<void> => {
      for (let spent = 0; spent < ms; spent += 20) {
        add('a');
        await settle();
        turns.at(-1)?.finish(null);
        await clock.advance(20);
      }
    };
    await storm(900);
    expect(turnsOf('a')).toBe(10);
    add('b');
    await settle();
    expect(turnsOf('b')).toBe(1);
    await storm(5_000);
    expect(turnsOf('a')).toBe(15);
  });

  it('spreads what failed all at once over time', async () => {
    const { clock, turns, add, settle, keys } = setUp();
    const many = 400;
    for (let n = 0; n < many; n++) add(`item-${n}`);
    await settle();
    for (let n = 0; n < many; n++) {
      turns[n]?.fail();
      await settle();
    }
    const retried = async (): Promise<number> => {
      for (let n = many; n < keys().length; n++) turns[n]?.finish(null);
      await settle();
      return keys().length - many;
    };
    const untilIdle = async (): Promise<number> => {
      for (let before = -1, now = 0; before !== now; [before, now] = [now, await retried()]);
      return retried();
    };
    await clock.advance(100);
    expect(await untilIdle()).toBeLessThanOrEqual(105);
    await clock.advance(2_000);
    expect(await untilIdle()).toBeLessThanOrEqual(205);
    await clock.advance(4_000);
    expect(await untilIdle()).toBe(many);
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
