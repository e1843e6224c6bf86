import { expect, it } from '@jest/globals';
import { type BusRequestError, type JsonValue, type OutgoingMessage } from '../bus.ts';
import { maximumMessageBytes } from '../message.ts';
import { partitionOf } from '../partitioner.ts';
import { type Bench, numbered, Recorder, totalLag } from './harness.ts';

const refused = (code: BusRequestError['code']): object =>
  expect.objectContaining({ name: 'BusRequestError', code });

/** What publishing promises. */
export function publishingTests(bench: Bench): void {
  it('keeps the order of each key, whoever else publishes', async () => {
    const topic = await bench.topic(3);
    const [first, second, consumer] = [await bench.bus(), await bench.bus(), await bench.bus()];
    const send = async (bus: typeof first, key: string): Promise<void> => {
      for (let from = 0; from < 100; from += 10) await bus.publish(numbered(topic, from, from + 10, { key }));
    };
    await Promise.all([send(first, 'a'), send(first, 'b'), send(second, 'c'), send(second, 'd')]);
    const recorder = new Recorder();
    await consumer.subscribe(bench.group(), topic, recorder.handle, { concurrency: 3 });
    await recorder.count(400);
    for (const key of ['a', 'b', 'c', 'd']) {
      const values = recorder.messages.filter((message) => message.key === key).map((m) => Number(m.value));
      expect(values).toEqual(Array.from({ length: 100 }, (_, i) => i));
    }
  });

  it('gives out rising offsets within a partition', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    await bus.publish(['a', 'b', 'c', 'd'].flatMap((key) => numbered(topic, 0, 20, { key })));
    const recorder = new Recorder();
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.count(80);
    for (const partition of [0, 1]) {
      const offsets = recorder.messages.filter((m) => m.partition === partition).map((m) => BigInt(m.offset));
      expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => (a < b ? -1 : 1)));
    }
  });

  it('carries bodies as JSON does', async () => {
    const topic = await bench.topic(1);
    const bus = await bench.bus();
    const bodies: JsonValue[] = [
      { kept: 1, dropped: undefined, nested: { list: [null, 'é日本🎬', '\0', '"\\\n'], no: false } },
      'text',
      0.1,
      null,
      [],
      'x'.repeat(1_000_000),
    ];
    await bus.publish(bodies.map((value) => ({ topic, key: 'k', value })));
    const recorder = new Recorder();
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.count(bodies.length);
    expect(recorder.messages.map((message) => message.value)).toEqual(bodies.map((b) => JSON.stringify(b)));
  });

  it('keeps key and headers, and says when the message was taken', async () => {
    const topic = await bench.topic(1);
    const bus = await bench.bus();
    const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', odd: 'é"\n' };
    await bus.publish([
      { topic, key: 'vid_é', value: 1, headers },
      { topic, key: '', value: 2 },
    ]);
    const recorder = new Recorder();
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.count(2);
    const [first, second] = recorder.messages;
    expect(first).toMatchObject({ topic, partition: 0, key: 'vid_é', headers });
    expect(second).toMatchObject({ key: '', headers: {} });
    expect(Math.abs(Date.now() - (first?.timestamp.getTime() ?? 0))).toBeLessThan(5 * 60_000);
  });

  it("places a key where Kafka's default partitioner does, unless the message names a partition", async () => {
    const topic = await bench.topic(5);
    const bus = await bench.bus();
    const keys = ['21', 'foobar', 'vid_1', 'acc_2', 'é'];
    await bus.publish([
      ...keys.map((key) => ({ topic, key, value: 'by key' })),
      ...[0, 1, 2, 3, 4].map((partition) => ({ topic, key: 'heartbeat', value: partition, partition })),
    ]);
    const recorder = new Recorder();
    await bus.subscribe(bench.group(), topic, recorder.handle);
    await recorder.count(10);
    for (const message of recorder.messages) {
      const byKey = message.key !== 'heartbeat';
      expect(message.partition).toBe(byKey ? partitionOf(message.key, 5) : Number(message.value));
    }
    expect(await bus.partitions(topic)).toBe(5);
  });

  it('refuses what it cannot send, with all of its batch', async () => {
    const topic = await bench.topic(2);
    const bus = await bench.bus();
    const good: OutgoingMessage = { topic, key: 'k', value: 1 };
    const bad = (message: Partial<OutgoingMessage>): Promise<void> =>
      bus.publish([good, { ...good, ...message }]);
    const circular: Record<string, JsonValue> = {};
    circular['self'] = circular;
    await expect(bad({ value: 'x'.repeat(maximumMessageBytes) })).rejects.toEqual(
      refused('message_too_large'),
    );
    await expect(bad({ headers: { h: 'é'.repeat(maximumMessageBytes / 2) } })).rejects.toEqual(
      refused('message_too_large'),
    );
    await expect(bad({ partition: 2 })).rejects.toEqual(refused('invalid_partition'));
    await expect(bad({ partition: -1 })).rejects.toEqual(refused('invalid_partition'));
    await expect(bad({ partition: 0.5 })).rejects.toEqual(refused('invalid_partition'));
    await expect(bad({ key: 'a\0b' })).rejects.toEqual(refused('invalid_message'));
    await expect(bad({ value: circular })).rejects.toEqual(refused('invalid_message'));
    await expect(bad({ value: undefined as unknown as JsonValue })).rejects.toEqual(
      refused('invalid_message'),
    );
    await expect(bad({ topic: 'millrace.conformance.unknown' })).rejects.toEqual(refused('unknown_topic'));
    expect(await totalLag(bus, bench.group(), topic)).toBe(0);
  });

  it('takes an empty batch, and a batch over several topics', async () => {
    const [one, two] = [await bench.topic(1), await bench.topic(2)];
    const bus = await bench.bus();
    await bus.publish([]);
    await bus.publish([
      { topic: one, key: 'k', value: 'one' },
      { topic: two, key: 'k', value: 'two' },
    ]);
    const recorder = new Recorder();
    const group = bench.group();
    await bus.subscribe(group, one, recorder.handle);
    await bus.subscribe(group, two, recorder.handle);
    await recorder.delivered(['one', 'two']);
  });

  it('knows no topic that nobody created', async () => {
    const bus = await bench.bus();
    const topic = 'millrace.conformance.unknown';
    await expect(bus.partitions(topic)).rejects.toEqual(refused('unknown_topic'));
    await expect(bus.lag('g', topic)).rejects.toEqual(refused('unknown_topic'));
    await expect(bus.subscribe('g', topic, () => Promise.resolve())).rejects.toEqual(
      refused('unknown_topic'),
    );
  });

  it('takes nothing more once closed', async () => {
    const topic = await bench.topic(1);
    const bus = await bench.bus();
    await bus.close();
    await expect(bus.publish(numbered(topic, 0, 1))).rejects.toEqual(refused('closed'));
    await expect(bus.subscribe('g', topic, () => Promise.resolve())).rejects.toEqual(refused('closed'));
    await expect(bus.lag('g', topic)).rejects.toEqual(refused('closed'));
    await bus.close();
  });
}
