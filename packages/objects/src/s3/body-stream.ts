import { type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { ObjectStoreError } from '../object-store.ts';

/**
 * The body of an answer, whose errors are the port's: a connection that breaks off, and one on which no byte was read
 * for `idleMs`, by the server's fault or the reader's. Destroying it closes the connection.
 */
export class BodyStream extends Readable {
  readonly #answer: IncomingMessage;

  constructor(answer: IncomingMessage, idleMs: number) {
    super();
    this.#answer = answer;
    answer.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) answer.pause();
    });
    answer.once('end', () => this.push(null));
    answer.once('error', (cause) => {
      this.destroy(new ObjectStoreError('unavailable', `the body broke off: ${cause.message}`, { cause }));
    });
    answer.setTimeout(idleMs, () => {
      this.destroy(new ObjectStoreError('unavailable', `no byte was read for ${idleMs} ms`));
    });
    answer.pause();
    // Whoever reads it hears of an error, also of one before they began: until then it must not end the process.
    this.on('error', () => undefined);
  }

  override _read(): void {
    this.#answer.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#answer.destroy();
    callback(error);
  }
}
