import { describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { type Kafka, type ProducerBatch, type RecordMetadata } from './kafkajs.ts';
import { BusUnavailableError } from '../bus.ts';
import { type PlacedMessage } from '../message.ts';
import { KafkaSender } from './sender.ts';
import { defaultTimes } from './times.ts';

const message = (partition: number): PlacedMessage => ({
  ...{ topic: 't', key: 'k', value: '1', headers: {}, bytes: 2 },
  partition,
});

/** Clients of which each does with a batch what the test says, and that remember what became of them. */
function createClients(...answers: ((batch: ProducerBatch) => Promise<RecordMetadata[]>)[]) {
  const clients: { sent: number; severed: boolean }[] = [];
  const open = () => {
    const client = { sent: 0, severed: false };
    const answer = answers[clients.push(client) - 1];
    const producer = {
      connect: () => Promise.resolve(),
      disconnect: () => Promise.resolve(),
      sendBatch: (batch: ProducerBatch) => {
        client.sent += 1;
        return answer?.(batch) ?? Promise.reject(new Error('no such client was expected'));
      },
    };
    return {
      kafka: { producer: () => producer } as unknown as Kafka,
      sever: () => {
        client.severed = true;
      },
    };
  };
  const times = { ...defaultTimes, publishMs: 50 };
  return { clients, sender: new KafkaSender({ open, logger: silentLogger, times }) };
}

const written = (...partitions: number[]): Promise<RecordMetadata[]> =>
  Promise.resolve(partitions.map((partition) => ({ topicName: 't', partition, errorCode: 0 })));

describe('KafkaSender', () => {
  it('takes nothing for written of which the brokers do not tell', async () => {
    const { clients, sender } = createClients(() => written(0));
    await expect(sender.send([message(0), message(1)])).rejects.toThrow(BusUnavailableError);
    expect(clients).toEqual([{ sent: 1, severed: true }]);
  });

  it('never uses a client again that failed, whose next batch could be taken for a repetition', async () => {
    const { clients, sender } = createClients(
      () => Promise.reject(new Error('connection lost')),
      () => written(0),
    );
    await expect(sender.send([message(0)])).rejects.toThrow(BusUnavailableError);
    await sender.send([message(0)]);
    await sender.send([message(0)]);
    expect(clients).toEqual([
      { sent: 1, severed: true },
      { sent: 2, severed: false },
    ]);
  });

  it('gives up what takes too long, and breaks its connections, so that it cannot arrive later', async () => {
    const { clients, sender } = createClients(() => new Promise(() => undefined));
    await expect(sender.send([message(0)])).rejects.toThrow(BusUnavailableError);
    expect(clients).toEqual([{ sent: 1, severed: true }]);
  });
});
