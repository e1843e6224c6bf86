import { BusRequestError, BusUnavailableError } from './bus.ts';

/** What goes into one send at most; a single message may weigh more. */
export interface SendLimits {
  messages: number;
  /** Messages with their overhead. */
  bytes: number;
}

/** What may wait for its turn, in bytes. Over it the database is too slow for what is published. */
const maximumWaitingBytes = 64 * 1024 * 1024;
/** What a message costs besides its text. */
const overheadBytes = 200;

interface Waiting<Message> {
  messages: readonly Message[];
  bytes: number;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Sends one batch at a time; what is published meanwhile is joined into the next one (as a database joins
 * commits), in the order of the calls. So few messages or many wait for about one write to the disk each
 * (480 messages a second when sent one after the other, 21,700 from eight publishers in hundreds).
 */
export class Publisher<Message extends { bytes: number }> {
  readonly #send: (batch: readonly Message[]) => Promise<void>;
  readonly #limits: SendLimits;
  #waiting: Waiting<Message>[] = [];
  #waitingBytes = 0;
  #running: Promise<void> | undefined;

  constructor(send: (batch: readonly Message[]) => Promise<void>, limits: SendLimits) {
    this.#send = send;
    this.#limits = limits;
  }

  /**
   * Resolves when all messages are durable.
   *
   * @throws {BusUnavailableError} when they may not be; {BusRequestError} when the receiver refuses some of them
   */
  async publish(messages: readonly Message[]): Promise<void> {
    await Promise.all(this.#split(messages).map((part) => this.#enqueue(part)));
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  #enqueue(messages: readonly Message[]): Promise<void> {
    const bytes = weigh(messages);
    if (this.#waitingBytes + bytes > maximumWaitingBytes && this.#waiting.length > 0) {
      return Promise.reject(new BusUnavailableError('too much waits to be published'));
    }
    this.#waitingBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ messages, bytes, resolve, reject });
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    // Calls made in the same turn share the first statement too.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#take();
      try {
        await this.#sendAll(batch);
      } catch (error) {
        // Those behind fail with it: overtaking it would change the order of a key when it is published again.
        for (const waiting of [...batch, ...this.#waiting.splice(0)]) waiting.reject(error);
        this.#waitingBytes = 0;
      }
    }
    this.#running = undefined;
  }

  /** When the receiver refuses what several publish together, each goes by itself: one's mistake is not the others'. */
  async #sendAll(batch: readonly Waiting<Message>[]): Promise<void> {
    try {
      await this.#send(batch.flatMap((waiting) => waiting.messages));
      for (const waiting of batch) waiting.resolve();
    } catch (error) {
      if (!(error instanceof BusRequestError)) throw error;
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const waiting of batch) await this.#sendAll([waiting]);
    }
  }

  #take(): Waiting<Message>[] {
    let count = 0;
    let messages = 0;
    let bytes = 0;
    for (const waiting of this.#waiting) {
      messages += waiting.messages.length;
      bytes += waiting.bytes;
      if (count > 0 && (messages > this.#limits.messages || bytes > this.#limits.bytes)) break;
      this.#waitingBytes -= waiting.bytes;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Parts that each fit one send. */
  #split(messages: readonly Message[]): Message[][] {
    const parts: Message[][] = [];
    let part: Message[] = [];
    let bytes = 0;
    for (const message of messages) {
      const weight = weigh([message]);
      if (part.length > 0 && (part.length >= this.#limits.messages || bytes + weight > this.#limits.bytes)) {
        parts.push(part);
        part = [];
        bytes = 0;
      }
      part.push(message);
      bytes += weight;
    }
    if (part.length > 0) parts.push(part);
    return parts;
  }
}

const weigh = (messages: readonly { bytes: number }[]): number =>
  messages.reduce((sum, message) => sum + message.bytes + overheadBytes, 0);
