import { afterEach, describe, expect, it } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@millrace/bus/memory';
import { type PlaybackConfirmationMessage, topics } from '@millrace/contract';
import { createManualClock } from '@millrace/testing';
import { createConfirmations } from './confirmations.ts';

const start = Date.parse('2030-01-01T00:00:00.000Z');
const buses: MemoryBus[] = [];
afterEach(async () => {
  await Promise.all(buses.splice(0).map((bus) => bus.close()));
});

function setUp() {
  const clock = createManualClock();
  const bus = createMemoryBus({ clock });
  buses.push(bus);
  let upToMs = -Infinity;
  const confirmations = createConfirmations({ bus, clock, states: { confirmedUpToMs: () => upToMs } });
  const stopping = new AbortController();
  const told = (): PlaybackConfirmationMessage[] =>
    bus
      .read(topics.playbackConfirmations.name)
      .map(({ value }) => topics.playbackConfirmations.schema.parse(JSON.parse(value)));
  return {
    ...{ clock, confirmations, told },
    confirm: (ms: number) => {
      upToMs = ms;
    },
    run: () => {
      const running = confirmations.loop.run(stopping.signal, () => undefined);
      return async () => {
        stopping.abort();
        await running;
      };
    },
  };
}

describe('confirmations', () => {
  it('announce the process before it knows anything, and tell when it is gone', async () => {
    const { confirmations, told, confirm } = setUp();
    await confirmations.announce();
    confirm(start);
    await confirmations.leave();
    const [first, last] = told();
    expect(first).toMatchObject({ confirmedUpTo: '1970-01-01T00:00:00.000Z', ended: false });
    expect(last).toMatchObject({
      confirmedUpTo: '2030-01-01T00:00:00.000Z',
      ended: true,
      bootId: first?.bootId,
    });
  });

  it('tell what is news within a second, and each 20 s that nothing is', async () => {
    const { clock, confirmations, told, confirm, run } = setUp();
    await confirmations.announce();
    const stop = run();
    await clock.whenSleeping();
    await clock.advance(10_000);
    expect(told()).toHaveLength(1);
    confirm(start + 10_000);
    await clock.advance(1_000);
    expect(told().map(({ confirmedUpTo }) => confirmedUpTo)).toEqual([
      '1970-01-01T00:00:00.000Z',
      '2030-01-01T00:00:10.000Z',
    ]);
    await clock.advance(19_000);
    expect(told()).toHaveLength(2);
    await clock.advance(1_000);
    expect(told()).toHaveLength(3);
    await stop();
  });
});
