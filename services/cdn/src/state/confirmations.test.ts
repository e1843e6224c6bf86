import { afterEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusUnavailableError } from '@millrace/bus';
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
  /** How the bus takes a word; the record knows what it was told, unless it is away. */
  const outside = { publish: bus.publish, recordAway: false };
  const noted: { bootId: string; cutOff: boolean }[] = [];
  const through: Bus = { ...bus, publish: (...messages) => outside.publish(...messages) };
  const confirmations = createConfirmations({
    ...{ bus: through, clock, states: { confirmedUpToMs: () => upToMs } },
    record: {
      note: (bootId, { cutOff }) => {
        if (outside.recordAway) return Promise.reject(new Error('the record is away'));
        noted.push({ bootId, cutOff });
        return Promise.resolve();
      },
    },
  });
  const told = (): PlaybackConfirmationMessage[] =>
    bus
      .read(topics.playbackConfirmations.name)
      .map(({ value }) => topics.playbackConfirmations.schema.parse(JSON.parse(value)));
  return {
    ...{ clock, confirmations, told, noted, outside },
    confirm: (ms: number) => {
      upToMs = ms;
    },
    run: () => {
      const stopping = new AbortController();
      const running = confirmations.loop.run(stopping.signal, () => undefined);
      return async () => {
        stopping.abort();
        await running;
      };
    },
  };
}

describe('confirmations', () => {
  it('announce the process to the record before it knows anything, and tell when it is gone', async () => {
    const { confirmations, told, noted, confirm } = setUp();
    expect(confirmations.announced).toBe(false);
    await confirmations.announce();
    expect(confirmations.announced).toBe(true);
    expect([noted.length, noted[0]?.cutOff, told()]).toEqual([1, false, []]);
    confirm(start);
    await confirmations.leave();
    expect(told()).toMatchObject([
      { confirmedUpTo: '2030-01-01T00:00:00.000Z', ended: true, bootId: noted[0]?.bootId },
    ]);
  });

  it('announce it by the bus where the record is away, and by neither while both are', async () => {
    const { confirmations, told, noted, outside } = setUp();
    outside.recordAway = true;
    const { publish } = outside;
    outside.publish = () => Promise.reject(new BusUnavailableError('the bus is away'));
    await expect(confirmations.announce()).rejects.toThrow('the bus is away');
    expect(confirmations.announced).toBe(false);
    outside.publish = publish;
    await confirmations.announce();
    expect(confirmations.announced).toBe(true);
    expect([noted, told()]).toMatchObject([
      [],
      [{ confirmedUpTo: '1970-01-01T00:00:00.000Z', ended: false }],
    ]);
  });

  it('tell the record that the process lives where the bus does not take their word, nor in time', async () => {
    const { clock, confirmations, noted, outside, run } = setUp();
    outside.publish = () => Promise.reject(new BusUnavailableError('the bus is away'));
    await expect(run()()).rejects.toThrow('the bus is away');
    expect(noted).toMatchObject([{ cutOff: true }]);
    expect(confirmations.announced).toBe(true);
    // Both are away: what is wrong with the bus is what the loop shows.
    outside.recordAway = true;
    await expect(run()()).rejects.toThrow('the bus is away');

    outside.recordAway = false;
    outside.publish = () => new Promise(() => undefined);
    const late = run()();
    const isLate = expect(late).rejects.toThrow('in time');
    await clock.whenSleeping();
    await clock.advance(5_000);
    await isLate;
    expect(noted).toMatchObject([{ cutOff: true }, { cutOff: true }]);
  });

  it('tell what is news within a second, and each 20 s that nothing is', async () => {
    const { clock, confirmations, told, confirm, run } = setUp();
    await confirmations.announce();
    const stop = run();
    await clock.advance(0);
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
