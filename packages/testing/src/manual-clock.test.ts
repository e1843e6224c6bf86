import { describe, expect, it } from '@jest/globals';
import { createManualClock } from './manual-clock.ts';

const start = new Date('2031-05-01T00:00:00.000Z');

describe('createManualClock', () => {
  it('stands still until it is advanced', async () => {
    const clock = createManualClock(start);
    expect(clock.now()).toEqual(start);
    await clock.advance(1_500);
    expect(clock.now().toISOString()).toBe('2031-05-01T00:00:01.500Z');
  });

  it('ends sleeps in the order of their time, each at its own instant', async () => {
    const clock = createManualClock(start);
    const seen: string[] = [];
    const nap = async (name: string, ms: number): Promise<void> => {
      await clock.sleep(ms);
      seen.push(`${name}@${clock.now().getTime() - start.getTime()}`);
    };
    const both = Promise.all([nap('late', 200), nap('early', 100)]);
    await clock.advance(99);
    expect(seen).toEqual([]);
    await clock.advance(200);
    await both;
    expect(seen).toEqual(['early@100', 'late@200']);
  });

  it('runs a loop that sleeps again within one advance', async () => {
    const clock = createManualClock(start);
    let turns = 0;
    const loop = (async () => {
      for (; turns < 5; turns += 1) await clock.sleep(1_000);
    })();
    await clock.advance(4_999);
    expect(turns).toBe(4);
    await clock.advance(1);
    await loop;
  });

  it('rejects an aborted sleep with the signal’s reason and forgets it', async () => {
    const clock = createManualClock(start);
    const reason = new Error('over');
    const controller = new AbortController();
    const sleep = clock.sleep(10, controller.signal);
    controller.abort(reason);
    await expect(sleep).rejects.toBe(reason);
    await expect(clock.sleep(10, controller.signal)).rejects.toBe(reason);
  });

  it('says when enough sleeps are waiting', async () => {
    const clock = createManualClock(start);
    const two = clock.whenSleeping(2);
    const first = clock.sleep(1);
    const order: string[] = [];
    void two.then(() => order.push('two'));
    await clock.whenSleeping();
    order.push('one');
    const second = clock.sleep(1);
    await two;
    expect(order).toEqual(['one', 'two']);
    await clock.advance(1);
    await Promise.all([first, second]);
  });
});
