import { expect, it } from '@jest/globals';
import { type Subscription } from '../bus.ts';
import { type Bench, eventually, gate, numbered, range, Recorder, totalLag } from './harness.ts';

const partitionsOf = (subscriptions: readonly Subscription[]): number[] =>
  subscriptions.flatMap((subscription) => [...subscription.assigned()]).sort((a, b) => a - b);

/** What members of one group owe each other. */
export function groupTests(bench: Bench): void {
  it('shares the partitions among the members, and each message goes to one', async () => {
    const topic = await bench.topic(4);
    const group = bench.group();
    const [one, two] = [await bench.bus(), await bench.bus()];
    const recorders = [new Recorder(), new Recorder()] as const;
    const subscriptions = [
      await one.subscribe(group, topic, recorders[0].handle),
      await two.subscribe(group, topic, recorders[1].handle),
    ];
    await eventually(
      'two partitions for each',
      () =>
        subscriptions.every((subscription) => subscription.assigned().length === 2) &&
        String(partitionsOf(subscriptions)) === '0,1,2,3',
    );
    await one.publish(range(0, 4).flatMap((partition) => numbered(topic, 0, 10, { partition })));
    await eventually('all to be committed', async () => (await totalLag(one, group, topic)) === 0);
    const count = (recorder: Recorder): number =>
      new Set(recorder.messages.map((m) => `${m.partition}:${m.offset}`)).size;
    expect(count(recorders[0])).toBe(20);
    expect(count(recorders[1])).toBe(20);
  });

  it('gives the partitions of a member that leaves to those that stay', async () => {
    const topic = await bench.topic(3);
    const group = bench.group();
    const [one, two] = [await bench.bus(), await bench.bus()];
    const recorder = new Recorder();
    const leaving = await one.subscribe(group, topic, () => Promise.resolve());
    const staying = await two.subscribe(group, topic, recorder.handle);
    await eventually('a share', () => leaving.assigned().length > 0 && staying.assigned().length > 0);
    await leaving.close();
    await eventually('all partitions', () => staying.assigned().length === 3);
    await two.publish(
      range(0, 3).flatMap((partition) => numbered(topic, partition, partition + 1, { partition })),
    );
    await recorder.delivered([0, 1, 2]);
  });

  it('lets a member that only waits stand in for one that leaves', async () => {
    const topic = await bench.topic(1);
    const group = bench.group();
    const [one, two] = [await bench.bus(), await bench.bus()];
    const members = [
      await one.subscribe(group, topic, () => Promise.resolve()),
      await two.subscribe(group, topic, () => Promise.resolve()),
    ];
    await eventually('one owner', () => partitionsOf(members).length === 1);
    const owner = members.find((member) => member.assigned().length === 1);
    const spare = members.find((member) => member !== owner);
    await owner?.close();
    await eventually('the other to take over', () => spare?.assigned().length === 1);
  });

  it('delivers what a crashed member did not commit to another one', async () => {
    const topic = await bench.topic(2);
    const group = bench.group();
    const [victim, heir] = [await bench.mortal(), await bench.bus()];
    const stuck = gate();
    const before = new Recorder((message) => (Number(message.value) % 10 === 1 ? stuck.opened : undefined));
    await heir.publish([
      ...numbered(topic, 0, 3, { partition: 0 }),
      ...numbered(topic, 10, 13, { partition: 1 }),
    ]);
    await victim.bus.subscribe(group, topic, before.handle, { concurrency: 2 });
    await before.delivered([0, 1, 10, 11]);
    await eventually('the first commits', async () => (await totalLag(heir, group, topic)) === 4);
    await victim.kill();
    const after = new Recorder();
    await heir.subscribe(group, topic, after.handle);
    await after.delivered([1, 2, 11, 12]);
    expect(after.values).not.toContain(0);
    expect(after.values).not.toContain(10);
    stuck.open();
  });

  it('delivers nothing again that was committed early before the crash', async () => {
    const topic = await bench.topic(1);
    const group = bench.group();
    const [victim, heir] = [await bench.mortal(), await bench.bus()];
    const [committed, stuck] = [gate(), gate()];
    await heir.publish(numbered(topic, 0, 2));
    await victim.bus.subscribe(group, topic, async (_message, delivery) => {
      await delivery.commit();
      committed.open();
      await stuck.opened;
    });
    await committed.opened;
    await victim.kill();
    const after = new Recorder();
    await heir.subscribe(group, topic, after.handle);
    await after.count(1);
    expect(after.values).toEqual([1]);
    stuck.open();
  });

  it('aborts the handler whose partition moves, and delivers its message again', async () => {
    const topic = await bench.topic(2);
    const group = bench.group();
    const [one, two] = [await bench.bus(), await bench.bus()];
    const aborted = gate();
    const first = new Recorder(
      (_message, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted.open();
            reject(new Error('the partition moved'));
          });
        }),
    );
    await one.publish([
      { topic, key: '', partition: 0, value: 0 },
      { topic, key: '', partition: 1, value: 1 },
    ]);
    const subscription = await one.subscribe(group, topic, first.handle, { concurrency: 2 });
    await first.delivered([0, 1]);
    const second = new Recorder();
    await two.subscribe(group, topic, second.handle);
    await aborted.opened;
    await second.count(1);
    await subscription.close();
    await second.delivered([0, 1]);
  });

  it('loses nothing while members come and go', async () => {
    const topic = await bench.topic(4);
    const group = bench.group();
    const publisher = await bench.bus();
    const recorder = new Recorder();
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    let next = 0;
    const publishSome = async (): Promise<void> => {
      const value = (): number => next++;
      await publisher.publish(range(0, 25).map((i) => ({ topic, key: keys[i % 8] ?? '', value: value() })));
    };
    const members = [await (await bench.bus()).subscribe(group, topic, recorder.handle, { concurrency: 4 })];
    for (let round = 0; round < 4; round++) {
      await publishSome();
      members.push(await (await bench.bus()).subscribe(group, topic, recorder.handle, { concurrency: 4 }));
      await publishSome();
      await members.shift()?.close();
    }
    await recorder.delivered(range(0, next));
    for (const key of keys) expectNoStepBack(recorder, key);
  });
}

/** A repetition may happen at a hand-over, but the first deliveries of a key come in their order. */
function expectNoStepBack(recorder: Recorder, key: string): void {
  const values = recorder.messages.filter((message) => message.key === key).map((m) => Number(m.value));
  const firsts = [...new Set(values)];
  expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
}
