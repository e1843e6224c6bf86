import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createMetrics, silentLogger } from '@millrace/platform';
import { captureLogger, waitFor } from '@millrace/testing';
import { z } from 'zod';
import { type BusMessage } from './bus.ts';
import { consume, type ConsumeOptions } from './consumer.ts';
import { replayDead } from './dead-letters.ts';
import { createMemoryBus, type MemoryBus } from './memory/memory-bus.ts';
import { maximumMessageBytes } from './message.ts';

const topic = { name: 'orders', schema: z.object({ v: z.literal(1), id: z.string() }) };
type Order = z.output<typeof topic.schema>;

let bus: MemoryBus;
beforeEach(() => {
  bus = createMemoryBus({ topics: { orders: 2, 'orders.dead': 2 } });
});
afterEach(() => bus.close());

const consumeOrders = async (
  options: Partial<ConsumeOptions<typeof topic.schema>> = {},
): Promise<{ orders: Order[]; messages: BusMessage[] }> => {
  const orders: Order[] = [];
  const messages: BusMessage[] = [];
  const handle = (order: Order, message: BusMessage): Promise<void> => {
    orders.push(order);
    messages.push(message);
    return Promise.resolve();
  };
  await consume(bus, { group: 'shop', topic, handle, logger: silentLogger, ...options });
  return { orders, messages };
};

const committed = async (): Promise<boolean> =>
  [...(await bus.lag('shop', 'orders')).values()].every((messages) => messages === 0);

describe('consume', () => {
  it('hands over parsed bodies, without fields that it does not know', async () => {
    await bus.publish([{ topic: 'orders', key: 'k', value: { v: 1, id: 'a', later: true } }]);
    const { orders, messages } = await consumeOrders();
    await waitFor(committed);
    expect(orders).toEqual([{ v: 1, id: 'a' }]);
    expect(messages[0]).toMatchObject({ topic: 'orders', key: 'k', offset: '0' });
  });

  it('sends what does not parse to the dead topic, with reason and origin, and goes on', async () => {
    const log = captureLogger();
    const metrics = createMetrics({ service: 'test' });
    await bus.publish([
      { topic: 'orders', key: 'k', value: { v: 1 }, headers: { traceparent: '00-1' } },
      { topic: 'orders', key: 'k', value: { v: 1, id: 'good' } },
    ]);
    const { orders } = await consumeOrders({ logger: log.logger, metrics });
    await waitFor(committed);
    expect(orders).toEqual([{ v: 1, id: 'good' }]);
    const [dead, ...more] = bus.read('orders.dead');
    expect(more).toEqual([]);
    const [original] = bus.read('orders');
    expect(dead).toMatchObject({ key: 'k', value: '{"v":1}', partition: original?.partition });
    expect(dead?.headers).toEqual({
      traceparent: '00-1',
      'millrace-dead-reason': expect.stringContaining('id'),
      'millrace-dead-topic': 'orders',
      'millrace-dead-partition': String(original?.partition),
      'millrace-dead-offset': '0',
      'millrace-dead-group': 'shop',
      'millrace-dead-body': 'json',
    });
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: 'error', message: 'message does not parse' }),
    );
    const text = await metrics.render();
    expect(text).toMatch(/millrace_bus_consumed_total\{.*outcome="dead".*\} 1/);
    expect(text).toMatch(/millrace_bus_consumed_total\{.*outcome="handled".*\} 1/);
    expect(text).toMatch(/millrace_bus_handle_seconds_count\{.*\} 1/);
  });

  it('keeps the text of a body that is not JSON, and a trace of one that is too large', async () => {
    const [raw, large] = ['not { json', `"${'x'.repeat(maximumMessageBytes - 10)}"`];
    const foreign = { ...bus, subscribe: subscribeWith([raw, large]) };
    await consume(foreign, { group: 'shop', topic, handle: unexpected, logger: silentLogger });
    const [text, cut] = bus.read('orders.dead').sort((a, b) => a.value.length - b.value.length);
    expect(text?.value).toBe(JSON.stringify(raw));
    expect(text?.headers).toMatchObject({ 'millrace-dead-body': 'text', 'millrace-dead-reason': 'not JSON' });
    expect(cut?.headers).toMatchObject({ 'millrace-dead-body': 'cut', 'millrace-dead-topic': 'orders' });
    expect(cut?.value.length).toBeLessThan(large.length / 2);
    expect(await replayDead(bus, 'orders', { logger: silentLogger })).toEqual({ replayed: 0, skipped: 2 });
  });

  it('leaves a message that does not parse to its own callback, when it has one', async () => {
    await bus.publish([{ topic: 'orders', key: 'k', value: 'bad' }]);
    const dropped: [string, string][] = [];
    await consumeOrders({ onDead: (message, reason) => void dropped.push([message.key, reason]) });
    await waitFor(committed);
    expect(dropped).toEqual([['k', expect.stringContaining('expected object')]]);
    expect(bus.read('orders.dead')).toEqual([]);
  });

  it('buries a message that its handler can never handle, and goes on', async () => {
    const metrics = createMetrics({ service: 'test' });
    const ids = ['hopeless', 'good'];
    await bus.publish(ids.map((id) => ({ topic: 'orders', key: 'k', value: { v: 1, id } })));
    const handled: string[] = [];
    await consumeOrders({
      metrics,
      handle: ({ id }) => {
        if (id === 'hopeless') return Promise.reject(new RangeError('too much'));
        handled.push(id);
        return Promise.resolve();
      },
      isHopeless: (error) => error instanceof RangeError,
    });
    await waitFor(committed);
    expect(handled).toEqual(['good']);
    expect(bus.read('orders.dead').map(({ headers }) => headers['millrace-dead-reason'])).toEqual([
      'RangeError: too much',
    ]);
    const text = await metrics.render();
    expect(text).toMatch(/millrace_bus_consumed_total\{.*outcome="dead".*\} 1/);
    expect(text).toMatch(/millrace_bus_consumed_total\{.*outcome="failed".*\} 0/);
  });

  it('delivers a message again when its handler or the dead topic fails', async () => {
    const metrics = createMetrics({ service: 'test' });
    await bus.publish([
      { topic: 'orders', key: 'k', value: 'bad' },
      { topic: 'orders', key: 'k', value: { v: 1, id: 'a' } },
    ]);
    const calls: string[] = [];
    const once = (what: string): Promise<void> => {
      calls.push(what);
      return calls.filter((call) => call === what).length === 1
        ? Promise.reject(new Error('no'))
        : Promise.resolve();
    };
    await consumeOrders({ handle: (order) => once(order.id), onDead: () => once('dead'), metrics });
    await waitFor(committed);
    expect(calls).toEqual(['dead', 'dead', 'a', 'a']);
    expect(await metrics.render()).toMatch(/millrace_bus_consumed_total\{.*outcome="failed".*\} 1/);
  });
});

describe('replayDead', () => {
  it('publishes dead messages again, in order and once, without the headers of their death', async () => {
    const bodies = [1, 2, 3].map((n) => ({ v: 2, id: String(n) }));
    const headers = { traceparent: '00-1' };
    await bus.publish(bodies.map((value) => ({ topic: 'orders', key: 'k', value, headers })));
    await consumeOrders();
    await waitFor(() => bus.read('orders.dead').length === 3);
    // The old consumer still cannot read them: what dies again waits for the next call.
    expect(await replayDead(bus, 'orders', { logger: silentLogger })).toEqual({ replayed: 3, skipped: 0 });
    await waitFor(() => bus.read('orders.dead').length === 6);
    const again = bus.read('orders').slice(3);
    expect(again.map((message): unknown => JSON.parse(message.value))).toEqual(bodies);
    expect(again.map((message) => message.headers)).toEqual([headers, headers, headers]);
    expect(again.every((message) => message.key === 'k')).toBe(true);
    expect(await replayDead(bus, 'orders', { logger: silentLogger })).toEqual({ replayed: 3, skipped: 0 });
  });

  it('has nothing to do when nothing died, and knows no topic that nobody created', async () => {
    expect(await replayDead(bus, 'orders', { logger: silentLogger })).toEqual({ replayed: 0, skipped: 0 });
    await expect(replayDead(bus, 'nonsense', { logger: silentLogger })).rejects.toMatchObject({
      code: 'unknown_topic',
    });
  });
});

const unexpected = (): Promise<void> => Promise.reject(new Error('must not be handled'));

/** Stands in for bodies from a foreign producer: our own publishers send JSON only. */
const subscribeWith =
  (values: string[]): MemoryBus['subscribe'] =>
  async (_group, topicName, handler) => {
    for (const [offset, value] of values.entries()) {
      await handler(
        {
          topic: topicName,
          partition: 0,
          offset: String(offset),
          key: 'k',
          value,
          headers: {},
          timestamp: new Date(),
        },
        { commit: () => Promise.resolve(), signal: new AbortController().signal },
      );
    }
    return { assigned: () => [0], close: () => Promise.resolve() };
  };
