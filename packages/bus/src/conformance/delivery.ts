import { expect, it } from '@jest/globals';
import { type Bench, eventually, gate, numbered, range, Recorder, totalLag } from './harness.ts';

/** What a subscriber is promised. */
export function deliveryTests(bench: Bench): void {
  it('starts a new group at the earliest message, or at the tail when told so', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    await bus.publish(['a', 'b', 'c', 'd'].flatMap((key) => numbered(topic, 0, 5, { key })));
    const [all, tail] = [new Recorder(), new Recorder()];
    await bus.subscribe(bench.group(), topic, tail.handle, { from: 'latest' });
    await bus.subscribe(bench.group(), topic, all.handle);
    await bus.publish(['a', 'b', 'c', 'd'].flatMap((key) => numbered(topic, 5, 10, { key })));
    await Promise.all([all.count(40), tail.count(20)]);
    expect(new Set(all.values)).toEqual(new Set(range(0, 10)));
    expect(new Set(tail.values)).toEqual(new Set(range(5, 10)));
  });

  it('goes on after what the group committed, wherever a new member wants to start', async () => {
    const topic = await bench.topic(1);
    const group = bench.group();
    const [first, second] = [await bench.bus(), await bench.bus()];
    await first.publish(numbered(topic, 0, 5));
    const before = new Recorder();
    await first.subscribe(group, topic, before.handle);
    await before.count(5);
    await first.close();
    await second.publish(numbered(topic, 5, 8));
    const after = new Recorder();
    await second.subscribe(group, topic, after.handle, { from: 'latest' });
    await after.count(3);
    expect(before.values).toEqual(range(0, 5));
    expect(after.values).toEqual(range(5, 8));
  });

  it('gives each group everything', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    const recorders = [new Recorder(), new Recorder()];
    for (const recorder of recorders) await bus.subscribe(bench.group(), topic, recorder.handle);
    await bus.publish(numbered(topic, 0, 10));
    await Promise.all(recorders.map((recorder) => recorder.count(10)));
    for (const recorder of recorders) expect(recorder.values).toEqual(range(0, 10));
  });

  it('delivers a failed message again, in order, while other partitions go on', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    const recorder = new Recorder((message, _delivery, attempt) => {
      if (message.value === '1' && message.partition === 0 && attempt < 3) throw new Error('not yet');
    });
    await bus.publish([
      ...numbered(topic, 0, 4, { partition: 0 }),
      ...numbered(topic, 10, 14, { partition: 1 }),
    ]);
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.delivered([...range(0, 4), ...range(10, 14)]);
    const of = (partition: number): unknown[] =>
      recorder.messages.filter((m) => m.partition === partition).map((m): unknown => JSON.parse(m.value));
    expect(of(0)).toEqual([0, 1, 1, 1, 2, 3]);
    expect(of(1)).toEqual(range(10, 14));
    const [, ...tries] = recorder.messages.filter((m) => m.partition === 0).map((m) => m.offset);
    expect(new Set(tries.slice(0, 3)).size).toBe(1);
  });

  it('takes an early commit for done: a later failure is not delivered again', async () => {
    const topic = await bench.topic(1);
    const [group, bus] = [bench.group(), await bench.bus()];
    const recorder = new Recorder(async (message, delivery) => {
      if (message.value !== '0') return;
      await delivery.commit();
      throw new Error('after the commit');
    });
    await bus.publish(numbered(topic, 0, 2));
    await bus.subscribe(group, topic, recorder.handle);
    await recorder.delivered([1]);
    expect(recorder.values).toEqual([0, 1]);
    await eventually('all to be committed', async () => (await totalLag(bus, group, topic)) === 0);
  });

  it('shows an early commit while the handler still runs', async () => {
    const topic = await bench.topic(1);
    const [group, bus, finish] = [bench.group(), await bench.bus(), gate()];
    const committed = gate();
    const recorder = new Recorder(async (_message, delivery) => {
      await delivery.commit();
      committed.open();
      await finish.opened;
    });
    await bus.publish(numbered(topic, 0, 1));
    await bus.subscribe(group, topic, recorder.handle);
    await committed.opened;
    await eventually('the commit to show', async () => (await totalLag(bus, group, topic)) === 0);
    finish.open();
  });

  it('holds deliveries back at the gate without losing partitions', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    const slot = gate();
    const [held, free] = [new Recorder(), new Recorder()];
    const subscription = await bus.subscribe(bench.group(), topic, held.handle, {
      pause: () => (held.messages.length === 0 ? slot.opened : undefined),
    });
    await bus.subscribe(bench.group(), topic, free.handle);
    await eventually('the assignment', () => subscription.assigned().length === 2);
    await bus.publish(['a', 'b', 'c', 'd'].flatMap((key) => numbered(topic, 0, 5, { key })));
    await free.count(20);
    expect(held.messages).toEqual([]);
    expect(subscription.assigned()).toEqual([0, 1]);
    slot.open();
    await held.count(20);
  });

  it('never overlaps messages of one partition, and handles as many partitions at once as told', async () => {
    const topic = await bench.topic(4);
    const bus = await bench.bus();
    const running = new Set<number>();
    let overlaps = 0;
    const allAtOnce = gate();
    const recorder = new Recorder(async ({ partition }) => {
      if (running.has(partition)) overlaps += 1;
      running.add(partition);
      if (running.size === 4) allAtOnce.open();
      await allAtOnce.opened;
      running.delete(partition);
    });
    await bus.publish(range(0, 4).flatMap((partition) => numbered(topic, 0, 25, { partition })));
    await bus.subscribe(bench.group(), topic, recorder.handle, { concurrency: 4 });
    await recorder.count(100);
    expect(overlaps).toBe(0);
  });

  it('handles one message at a time unless told', async () => {
    const topic = await bench.topic(4);
    const bus = await bench.bus();
    let running = 0;
    let most = 0;
    const recorder = new Recorder(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    });
    await bus.publish(range(0, 4).flatMap((partition) => numbered(topic, 0, 10, { partition })));
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.count(40);
    expect(most).toBe(1);
  });

  it('counts as lag what the group has not committed, per partition', async () => {
    const topic = await bench.topic(2);
    const [group, bus] = [bench.group(), await bench.bus()];
    await bus.publish([
      ...numbered(topic, 0, 3, { partition: 0 }),
      ...numbered(topic, 0, 2, { partition: 1 }),
    ]);
    const lag = async (): Promise<unknown> => Object.fromEntries(await bus.lag(group, topic));
    expect(await lag()).toEqual({ 0: 3, 1: 2 });
    const recorder = new Recorder();
    const subscription = await bus.subscribe(group, topic, recorder.handle);
    await recorder.count(5);
    await eventually('no lag', async () => (await totalLag(bus, group, topic)) === 0);
    await subscription.close();
    await bus.publish(numbered(topic, 3, 7, { partition: 0 }));
    expect(await lag()).toEqual({ 0: 4, 1: 0 });
  });

  it('waits on close for the handler in flight, tells it by its signal, and commits what it finished', async () => {
    const topic = await bench.topic(1);
    const group = bench.group();
    const [bus, other] = [await bench.bus(), await bench.bus()];
    const [aborted, finish] = [gate(), gate()];
    const recorder = new Recorder(async (_message, { signal }) => {
      signal.addEventListener('abort', () => aborted.open());
      await finish.opened;
    });
    await bus.publish(numbered(topic, 0, 2));
    const subscription = await bus.subscribe(group, topic, recorder.handle);
    await recorder.count(1);
    let closed = false;
    const closing = subscription.close().then(() => (closed = true));
    await aborted.opened;
    await other.lag(group, topic);
    expect(closed).toBe(false);
    finish.open();
    await closing;
    expect(recorder.values).toEqual([0]);
    expect(subscription.assigned()).toEqual([]);
    expect(await totalLag(other, group, topic)).toBe(1);
    const rest = new Recorder();
    await other.subscribe(group, topic, rest.handle);
    await rest.count(1);
    expect(rest.values).toEqual([1]);
  });
}
