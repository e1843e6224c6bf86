import { describe, expect, it, jest } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../../../dev/kafka/jars.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { type Bus, BusUnavailableError, type Delivery, type OutgoingMessage } from '../bus.ts';
import { collect, kafkaFixture, patience } from '../testing/kafka-fixture.ts';

/** Two starts of a broker on a loaded machine. */
jest.setTimeout(180_000);
/** What has a bound of seconds ends within this; what has none goes on for a minute or more. */
const soonMs = 30_000;

describeWith(missingForKafka(), 'the bus on Kafka, when the broker', () => {
  const fixture = kafkaFixture();
  const { open, numbers, lagOf } = fixture;

  /** Publishes numbers one after the other until told to stop; remembers which were acknowledged. */
  function load(bus: Bus): { acked: number[]; stop(): Promise<void> } {
    const acked: number[] = [];
    const asked = new AbortController();
    const publish = async (value: number): Promise<void> => {
      const message = { topic: fixture.topic, key: String(value % 7), value };
      const accepted = await bus.publish([message]).then(
        () => true,
        (error: unknown) => {
          if (error instanceof BusUnavailableError) return false;
          throw error;
        },
      );
      if (accepted) acked.push(value);
      else if (!asked.signal.aborted) await publish(value);
    };
    const run = async (): Promise<void> => {
      for (let value = 0; !asked.signal.aborted; value++) await publish(value);
    };
    const running = run();
    return {
      acked,
      stop: () => {
        asked.abort();
        return running;
      },
    };
  }

  /** Publishes until it is taken: a broker that starts may be slow. It may be taken more than once. */
  const taken = (bus: Bus, messages: OutgoingMessage[]): Promise<boolean> =>
    waitFor(async () => {
      await bus.publish(messages);
      return true;
    }, patience);

  it('is killed under load and starts again: nothing acknowledged is lost, each key keeps its order', async () => {
    const [publisher, consumer] = [open(), open()];
    const seen: OutgoingMessage[] = [];
    await consumer.subscribe('g', fixture.topic, (message) => {
      seen.push({ topic: '', key: message.key, value: Number(message.value) });
      return Promise.resolve();
    });
    const traffic = load(publisher);
    await waitFor(() => traffic.acked.length > 50, patience);
    await fixture.broker.kill();
    const before = traffic.acked.length;
    await fixture.broker.start();
    await waitFor(() => traffic.acked.length > before + 50, patience);
    await traffic.stop();
    await waitFor(() => new Set(seen.map(({ value }) => value)).size >= traffic.acked.length, patience);
    const values = new Set(seen.map(({ value }) => value));
    expect(traffic.acked.filter((value) => !values.has(value))).toEqual([]);
    for (let key = 0; key < 7; key++) {
      const firsts = [...new Set(seen.filter((m) => m.key === String(key)).map((m) => Number(m.value)))];
      expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
    }
    await waitFor(async () => String(await lagOf(consumer, 'g')) === '0,0', patience);
  });

  it('is away for longer than a session: publishing fails in time, and all goes on by itself', async () => {
    const [publisher, consumer] = [open(), open()];
    const { values, handle } = collect();
    const subscription = await consumer.subscribe('g', fixture.topic, handle);
    await taken(publisher, numbers(0, 3));
    await waitFor(() => values.includes(2), patience);
    await fixture.broker.shutDown();
    await expect(publisher.publish(numbers(3, 4))).rejects.toThrow(BusUnavailableError);
    await expect(consumer.lag('g', fixture.topic)).rejects.toThrow(BusUnavailableError);
    await expect(consumer.subscribe('h', fixture.topic, handle)).rejects.toThrow(BusUnavailableError);
    // The membership is over: what it had may be anybody's.
    await waitFor(() => subscription.assigned().length === 0, patience);
    await fixture.broker.start();
    await waitFor(() => subscription.assigned().length === 2, patience);
    await taken(publisher, numbers(10, 13));
    await waitFor(async () => String(await lagOf(consumer, 'g')) === '0,0', patience);
    // At least once, in their order; of the one that failed nobody knows whether it was written.
    const firsts = [...new Set(values)].filter((value) => value !== 3);
    expect(firsts).toEqual([0, 1, 2, 10, 11, 12]);
  });

  it('freezes: publishing fails in time, and goes on after the thaw', async () => {
    const [publisher, consumer] = [open(), open()];
    const { values, handle } = collect();
    const subscription = await consumer.subscribe('g', fixture.topic, handle);
    await taken(publisher, numbers(0, 1));
    await waitFor(() => values.includes(0), patience);
    fixture.broker.freeze();
    try {
      const start = performance.now();
      await expect(publisher.publish(numbers(1, 2))).rejects.toThrow(BusUnavailableError);
      expect(performance.now() - start).toBeLessThan(soonMs);
      await waitFor(() => subscription.assigned().length === 0, patience);
    } finally {
      fixture.broker.thaw();
    }
    await taken(publisher, numbers(2, 3));
    await waitFor(() => values.includes(2), patience);
  });

  it('is gone at the end: closing takes bounded time', async () => {
    const bus = open();
    await bus.subscribe('g', fixture.topic, () => Promise.resolve());
    await taken(bus, numbers(0, 1));
    fixture.broker.freeze();
    const start = performance.now();
    try {
      await bus.close();
    } finally {
      fixture.broker.thaw();
    }
    expect(performance.now() - start).toBeLessThan(soonMs);
    await expect(bus.publish(numbers(0, 1))).rejects.toMatchObject({ code: 'closed' });
  });

  describe('is behind a line that', () => {
    it('goes dead without a word: a member counts as gone after a session, whatever still waits for an answer', async () => {
      const bus = open({ cuttable: true, times: { requestMs: 60_000 } });
      const handlers: Delivery[] = [];
      await bus.publish(numbers(0, 1));
      const subscription = await bus.subscribe('g', fixture.topic, (_message, delivery) => {
        handlers.push(delivery);
        return new Promise((resolve) => delivery.signal.addEventListener('abort', () => resolve()));
      });
      await waitFor(() => handlers.length === 1, patience);
      const start = performance.now();
      fixture.line.block();
      await waitFor(() => handlers[0]?.signal.aborted, patience);
      expect(performance.now() - start).toBeLessThan(soonMs);
      expect(subscription.assigned()).toEqual([]);
      fixture.line.cut();
    });

    it('goes dead without a word: what was connected is given up, and all goes on over new connections', async () => {
      const [bus, other] = [open({ cuttable: true }), open()];
      const { values, handle } = collect();
      await bus.subscribe('g', fixture.topic, handle);
      await bus.publish(numbers(0, 1));
      await waitFor(() => values.length === 1, patience);
      fixture.line.block();
      const failure = expect(bus.publish(numbers(1, 2))).rejects.toThrow(BusUnavailableError);
      await failure;
      fixture.line.mend();
      await other.publish(numbers(2, 3));
      await waitFor(() => values.includes(2), patience);
      await bus.publish(numbers(3, 4));
      await waitFor(() => values.includes(3), patience);
    });

    it('swallows an acknowledgement: the next batch is not taken for a repetition of the unknown one', async () => {
      const [bus, other] = [open({ cuttable: true }), open()];
      const { values, handle } = collect();
      await bus.publish(numbers(0, 1));
      await other.subscribe('g', fixture.topic, handle);
      await waitFor(() => values.length === 1, patience);
      fixture.line.block('answers');
      await expect(bus.publish(numbers(1, 2))).rejects.toThrow(BusUnavailableError);
      await waitFor(() => values.includes(1), patience);
      fixture.line.mend();
      // The same partition and the same number of messages: with the same producer it would look the same.
      await bus.publish(numbers(2, 3));
      await waitFor(() => values.includes(2), patience);
    });
  });
});
