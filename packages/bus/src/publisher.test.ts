import { describe, expect, it } from '@jest/globals';
import { BusRequestError } from './bus.ts';
import { Publisher } from './publisher.ts';

interface Message {
  id: number;
  bytes: number;
}

/** A wire whose sends end when the test says so. */
function createWire(): {
  sent: number[][];
  send(batch: readonly Message[]): Promise<void>;
  settle(error?: Error): Promise<void>;
} {
  const sent: number[][] = [];
  const waiting: PromiseWithResolvers<undefined>[] = [];
  return {
    sent,
    send: (batch) => {
      sent.push(batch.map((message) => message.id));
      const outcome = Promise.withResolvers<undefined>();
      waiting.push(outcome);
      return outcome.promise;
    },
    settle: async (error) => {
      const outcome = waiting.shift();
      if (error) outcome?.reject(error);
      else outcome?.resolve(undefined);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const limits = { messages: 1_000, bytes: 8 * 1024 * 1024 };
const message = (id: number, bytes = 10): Message => ({ id, bytes });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('Publisher', () => {
  it('sends one batch at a time and joins what comes meanwhile, in order', async () => {
    const wire = createWire();
    const publisher = new Publisher<Message>(wire.send, limits);
    const first = publisher.publish([message(1), message(2)]);
    await turn();
    const others = [publisher.publish([message(3)]), publisher.publish([message(4), message(5)])];
    await turn();
    expect(wire.sent).toEqual([[1, 2]]);
    await wire.settle();
    await first;
    expect(wire.sent).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
    await wire.settle();
    await Promise.all(others);
    await publisher.idle();
  });

  it('splits what is too much for one statement, by number and by size', async () => {
    const wire = createWire();
    const publisher = new Publisher<Message>(wire.send, limits);
    const many = publisher.publish(Array.from({ length: 2_500 }, (_, id) => message(id)));
    for (let i = 0; i < 3; i++) {
      await turn();
      await wire.settle();
    }
    await many;
    expect(wire.sent.map((batch) => batch.length)).toEqual([1_000, 1_000, 500]);
    expect(wire.sent.flat()).toEqual(Array.from({ length: 2_500 }, (_, id) => id));

    wire.sent.length = 0;
    const large = publisher.publish(Array.from({ length: 10 }, (_, id) => message(id, 1_000_000)));
    for (let i = 0; i < 2; i++) {
      await turn();
      await wire.settle();
    }
    await large;
    expect(wire.sent.map((batch) => batch.length)).toEqual([8, 2]);
  });

  it('fails what waits behind a failure too, and sends again afterwards', async () => {
    const wire = createWire();
    const publisher = new Publisher<Message>(wire.send, limits);
    const first = publisher.publish([message(1)]);
    await turn();
    const second = publisher.publish([message(2)]);
    const outcomes = Promise.allSettled([first, second]);
    await wire.settle(new Error('gone'));
    expect((await outcomes).map((outcome) => outcome.status)).toEqual(['rejected', 'rejected']);
    const third = publisher.publish([message(3)]);
    await turn();
    await wire.settle();
    await third;
    expect(wire.sent).toEqual([[1], [3]]);
  });

  it('refuses more than 64 MiB of waiting messages', async () => {
    const wire = createWire();
    const publisher = new Publisher<Message>(wire.send, limits);
    const inFlight = publisher.publish([message(0)]);
    await turn();
    const megabytes = Array.from({ length: 64 }, (_, id) => publisher.publish([message(id, 1_000_000)]));
    const all = Promise.allSettled(megabytes);
    await expect(
      publisher.publish(Array.from({ length: 8 }, (_, id) => message(id, 1_000_000))),
    ).rejects.toMatchObject({
      code: 'bus_unavailable',
    });
    await wire.settle();
    await inFlight;
    for (let i = 0; i < 8; i++) await wire.settle();
    expect(new Set((await all).map((outcome) => outcome.status))).toEqual(new Set(['fulfilled']));
  });

  it("sends each caller alone when what they publish together is refused, so that one mistake is nobody else's", async () => {
    const wire = createWire();
    const publisher = new Publisher<Message>(wire.send, limits);
    const all = Promise.allSettled([1, 2, 3].map((id) => publisher.publish([message(id)])));
    await turn();
    const refusal = new BusRequestError('message_too_large', 'too large');
    await wire.settle(refusal);
    await wire.settle();
    await wire.settle(refusal);
    await wire.settle();
    expect(wire.sent).toEqual([[1, 2, 3], [1], [2], [3]]);
    expect((await all).map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });
});
