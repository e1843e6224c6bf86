import { type Logger } from '@millrace/platform';
import { type Producer, type ProducerBatch, type RecordMetadata } from './kafkajs.ts';
import { BusUnavailableError } from '../bus.ts';
import { type PlacedMessage } from '../message.ts';
import { type KafkaClient } from './client.ts';
import { toBusError } from './errors.ts';
import { type KafkaTimes } from './times.ts';
import { within } from './within.ts';

/** Until the deadline, which is what ends a send. */
const sendRetry = { retries: 1_000, initialRetryTime: 100, maxRetryTime: 1_000 };

export interface SenderDeps {
  open: () => KafkaClient;
  logger: Logger;
  times: KafkaTimes;
}

/**
 * Sends batches, one at a time, with an idempotent producer: all replicas have them when it resolves, and what
 * kafkajs sends again after a broken connection is written once.
 *
 * A producer that failed is never used again. kafkajs gives the next batch the sequence numbers of the failed one; if
 * that had arrived after all, the broker would take the new one for a repetition and acknowledge it unwritten.
 */
export class KafkaSender {
  readonly #deps: SenderDeps;
  #session: { client: KafkaClient; producer: Producer } | undefined;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** @throws {BusUnavailableError} when some of it may not be written, {BusRequestError} when the broker refuses it */
  async send(batch: readonly PlacedMessage[]): Promise<void> {
    const { publishMs } = this.#deps.times;
    const giveUp = (): never => {
      throw new BusUnavailableError(`the brokers did not take a batch within ${publishMs} ms`);
    };
    try {
      const written = await within(publishMs, this.#send(batch), giveUp);
      assertWhole(batch, written);
    } catch (error) {
      this.sever();
      throw toBusError(error);
    }
  }

  async close(): Promise<void> {
    const producer = this.#session?.producer;
    if (producer) {
      await within(this.#deps.times.farewellMs, producer.disconnect(), () => undefined).catch(
        () => undefined,
      );
    }
    this.sever();
  }

  /** Breaks off what is being sent. */
  sever(): void {
    this.#session?.client.sever();
    this.#session = undefined;
  }

  async #send(batch: readonly PlacedMessage[]): Promise<RecordMetadata[]> {
    if (!this.#session) {
      const client = this.#deps.open();
      this.#session = {
        client,
        producer: client.kafka.producer({ ...producerOptions, metadataMaxAge: this.#deps.times.metadataMs }),
      };
      await this.#session.producer.connect();
    }
    return this.#session.producer.sendBatch({
      acks: -1,
      timeout: this.#deps.times.requestMs,
      topicMessages: toTopicMessages(batch),
    });
  }
}

const producerOptions = {
  idempotent: true,
  maxInFlightRequests: 1,
  allowAutoTopicCreation: false,
  retry: sendRetry,
  // Every message comes with its partition.
  createPartitioner:
    () =>
    ({ message }: { message: { partition?: number } }): number =>
      message.partition ?? 0,
};

function toTopicMessages(batch: readonly PlacedMessage[]): NonNullable<ProducerBatch['topicMessages']> {
  const byTopic = Map.groupBy(batch, (message) => message.topic);
  return [...byTopic].map(([topic, messages]) => ({
    topic,
    messages: messages.map(({ key, value, headers, partition }) => ({ key, value, headers, partition })),
  }));
}

/** kafkajs leaves out, without a word, what goes to a partition that its metadata does not have yet. */
function assertWhole(batch: readonly PlacedMessage[], written: readonly RecordMetadata[]): void {
  const nameOf = (topic: string, partition: number): string => `${topic}-${partition}`;
  const places = new Set(written.map(({ topicName, partition }) => nameOf(topicName, partition)));
  const missing = batch.find(({ topic, partition }) => !places.has(nameOf(topic, partition)));
  if (missing) {
    throw new BusUnavailableError(
      `the brokers do not know partition ${missing.partition} of ${missing.topic} yet`,
    );
  }
}
