import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createManualClock, type ManualClock, waitFor } from '@millrace/testing';
import { type Bus, BusUnavailableError, type Delivery } from '../bus.ts';
import { MemoryLog } from '../memory/memory-log.ts';
import { createLogBus } from './log-bus.ts';

const times = { leaseMs: 10_000, sweepMs: 1_000, handoverMs: 30_000 };

let clock: ManualClock;
let log: MemoryLog;
let bus: Bus;
let calls: string[];
/** Calls of the store that fail. */
let broken: Set<string>;
/** What calls of the store wait for. */
let slow: Map<string, Promise<void>>;

beforeEach(() => {
  clock = createManualClock();
  log = new MemoryLog(clock, { t: 2 });
  calls = [];
  broken = new Set();
  slow = new Map();
  bus = open('boot-1');
});
afterEach(async () => {
  broken.clear();
  await bus.close();
});

/** A bus over the log that notes its calls and fails those that the test broke. */
function open(bootId: string): Bus {
  const store = new Proxy(log, {
    get: (_target, name: keyof MemoryLog) => {
      const method = log[name].bind(log) as (...args: unknown[]) => unknown;
      if (['listen', 'announce', 'close', 'partitions', 'append'].includes(name)) return method;
      return async (...args: unknown[]) => {
        await slow.get(name);
        calls.push(name);
        return broken.has(name) ? Promise.reject(new BusUnavailableError('broken')) : await method(...args);
      };
    },
  });
  return createLogBus({ store, bootId, clock, logger: silentLogger, times });
}

const publish = (partition: number, ...values: number[]): Promise<void> =>
  bus.publish(values.map((value) => ({ topic: 't', key: 'k', value, partition })));

describe('a subscription to a log', () => {
  it('waits longer after each failure, up to 30 s, and starts anew after a success', async () => {
    const deliveries: number[] = [];
    let healthy = false;
    await publish(0, 1, 2);
    await bus.subscribe('g', 't', (message) => {
      deliveries.push(clock.now().getTime());
      if (healthy && message.value === '1') return Promise.resolve();
      healthy = false;
      return Promise.reject(new Error('no'));
    });
    const failures = async (count: number): Promise<void> => {
      await waitFor(() => deliveries.length === count, { what: `${count} deliveries` });
    };
    await failures(1);
    const waits: number[] = [];
    for (let n = 2; n <= 11; n++) {
      const from = clock.now().getTime();
      while (deliveries.length < n) await clock.advance(100);
      waits.push((deliveries.at(-1) ?? 0) - from);
    }
    expect(waits).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    healthy = true;
    while (deliveries.length < 13) await clock.advance(100);
    const before = deliveries.at(-1) ?? 0;
    while (deliveries.length < 14) await clock.advance(100);
    expect((deliveries.at(-1) ?? 0) - before).toBe(200);
  });

  it('aborts its handlers when its lease runs out unrenewed, and begins again when it is back', async () => {
    const seen: { value: string; delivery: Delivery }[] = [];
    let finish = (): void => undefined;
    await publish(0, 1);
    const subscription = await bus.subscribe(
      'g',
      't',
      (message, delivery) => {
        seen.push({ value: message.value, delivery });
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
      { concurrency: 2 },
    );
    await waitFor(() => seen.length === 1);
    broken.add('renew');
    await clock.advance(9_000);
    expect(seen[0]?.delivery.signal.aborted).toBe(false);
    expect(subscription.assigned()).toEqual([0, 1]);
    await clock.advance(2_000);
    expect(seen[0]?.delivery.signal.aborted).toBe(true);
    expect(subscription.assigned()).toEqual([]);
    await expect(seen[0]?.delivery.commit()).rejects.toThrow(BusUnavailableError);

    broken.delete('renew');
    await clock.advance(2_000);
    await waitFor(() => subscription.assigned().length === 2);
    // The aborted handler still runs: nothing else of its partition may.
    await log.lag('g', 't');
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen.length).toBe(1);
    finish();
    await waitFor(() => seen.length === 2);
    expect(seen[1]?.value).toBe('1');
    finish();
  });

  it('keeps offsets that could not be written, and writes them later', async () => {
    broken.add('commit');
    await publish(0, 1, 2, 3);
    const values: string[] = [];
    await bus.subscribe('g', 't', (message) => {
      values.push(message.value);
      return Promise.resolve();
    });
    await waitFor(() => values.length === 3);
    expect((await log.lag('g', 't')).get(0)).toBe(3);
    broken.delete('commit');
    while ((await log.lag('g', 't')).get(0) !== 0) await clock.advance(500);
    expect(values).toEqual(['1', '2', '3']);
  });

  it('has written its offsets before it leaves the group', async () => {
    const written = Promise.withResolvers<undefined>();
    slow.set('commit', written.promise);
    const values: string[] = [];
    const subscription = await bus.subscribe('g', 't', (message) => {
      values.push(message.value);
      return Promise.resolve();
    });
    // The beat that its own joining woke is over: none will wait for the commit in place of the close.
    await waitFor(() => calls.filter((name) => name === 'survey').length >= 3);
    await publish(0, 1);
    await waitFor(() => values.length === 1);
    const closing = subscription.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(calls).not.toContain('leave');
    written.resolve(undefined);
    await closing;
    expect(calls.slice(-2)).toEqual(['commit', 'leave']);
    expect((await log.lag('g', 't')).get(0)).toBe(0);
  });

  it('looks at the log each second though nothing wakes it', async () => {
    await bus.subscribe('g', 't', () => Promise.resolve());
    for (let second = 0; second < 5; second++) {
      await clock.whenSleeping(2);
      calls.length = 0;
      await clock.advance(1_000);
      await waitFor(() => calls.includes('renew') && calls.includes('survey'));
    }
    expect(calls).not.toContain('claim');
  });

  it('gives a partition away when its handler does not end, and takes no commit of it', async () => {
    const hanging: Delivery[] = [];
    await publish(0, 1);
    await publish(1, 2);
    await bus.subscribe(
      'g',
      't',
      (_message, delivery) => {
        hanging.push(delivery);
        return new Promise(() => undefined);
      },
      { concurrency: 2 },
    );
    await waitFor(() => hanging.length === 2);
    const heir = open('boot-2');
    const values: string[] = [];
    await heir.subscribe('g', 't', (message) => {
      values.push(message.value);
      return Promise.resolve();
    });
    await waitFor(() => hanging.some((delivery) => delivery.signal.aborted));
    await clock.advance(29_000);
    expect(values).toEqual([]);
    while (values.length === 0) await clock.advance(500);
    const lost = hanging.find((delivery) => delivery.signal.aborted);
    await expect(lost?.commit()).rejects.toThrow(BusUnavailableError);
    const closing = Promise.all([heir.close(), bus.close()]);
    await clock.whenSleeping(1);
    for (let i = 0; i < 40; i++) await clock.advance(1_000);
    await closing;
  });

  it('tells of messages that others handled while it had lost the partition', async () => {
    const gaps: number[] = [];
    const values: string[] = [];
    const subscription = await bus.subscribe(
      'g',
      't',
      (message) => {
        values.push(message.value);
        return Promise.resolve();
      },
      { onGap: (partition) => gaps.push(partition) },
    );
    await publish(0, 1);
    await waitFor(() => values.length === 1);
    broken.add('renew').add('join');
    await clock.advance(11_000);
    expect(subscription.assigned()).toEqual([]);
    broken.clear();
    await log.commit({ id: await owner(0), group: 'g', topic: 't' }, [{ partition: 0, epoch: 1, next: 2 }]);
    await publish(0, 2, 3);
    await clock.advance(1_000);
    await waitFor(() => values.includes('3'));
    expect(gaps).toEqual([0]);
    expect(values).toEqual(['1', '3']);
  });

  it('does not join when the log cannot be reached', async () => {
    broken.add('survey');
    await expect(bus.subscribe('g', 't', () => Promise.resolve())).rejects.toThrow(BusUnavailableError);
    expect(calls).toContain('leave');
  });
});

/** Who owns a partition of `t` in group `g`, asked through a member that owns none. */
async function owner(partition: number): Promise<string> {
  const guest = { id: 'guest', group: 'g', topic: 't' };
  return (await log.survey(guest)).find((state) => state.partition === partition)?.owner ?? '';
}
