import { type IncomingHttpHeaders } from 'node:http';
import { type Client, type Dispatcher, errors } from 'undici';
import { type EgressAnswer, EgressError, type EgressRequest } from './egress.ts';

/**
 * Sends one request on a client and reads the answer up to its limit, never holding more of it in memory. A cut
 * answer closes the connection, since its rest is still on the way.
 * @throws EgressError
 */
export function exchange(client: Client, request: EgressRequest, path: string): Promise<EgressAnswer> {
  return new Promise((resolve, reject) => {
    const { method, headers, body } = request;
    client.dispatch(
      { path, method, headers, ...(body === undefined ? {} : { body }) },
      new AnswerReader(request.maxResponseBytes, resolve, reject),
    );
  });
}

class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #limit: number;
  readonly #resolve: (answer: EgressAnswer) => void;
  readonly #reject: (error: Error) => void;
  #status: number | null = null;
  #headers: IncomingHttpHeaders = {};
  #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(limit: number, resolve: (answer: EgressAnswer) => void, reject: (error: Error) => void) {
    this.#limit = limit;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  // undici asks for it, though all that it could tell is told by the others.
  onRequestStart(): void {
    this.#status = null;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx is an announcement, not the answer (RFC 9110 §15.2).
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = this.#limit - this.#length;
    this.#chunks.push(chunk);
    this.#length += Math.min(chunk.length, room);
    if (chunk.length <= room) return;
    this.#answer(true);
    controller.abort(new Error('the rest of the answer is not wanted'));
  }

  onResponseEnd(): void {
    this.#answer(false);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reject(toEgressError(error, this.#status));
  }

  #answer(truncated: boolean): void {
    if (this.#status === null) return;
    // Cuts what is over the length.
    const body = Buffer.concat(this.#chunks, this.#length);
    this.#chunks = [];
    this.#resolve({ status: this.#status, headers: this.#headers, body, truncated });
  }
}

const notHttp = [errors.HTTPParserError, errors.ResponseContentLengthMismatchError];
/** Two of undici's socket errors which only their texts tell from a lost connection. */
const notHttpTexts = new Set(['bad response', 'bad upgrade']);

/** Says in our words what undici says: its texts may have come from the other side. */
function toEgressError(error: Error, status: number | null): Error {
  if (error instanceof EgressError) {
    return status === null
      ? error
      : new EgressError(error.code, error.message, { cause: error.cause, status });
  }
  const failed = (kind: 'bad_answer' | 'connection_lost', message: string): EgressError =>
    new EgressError(kind, message, { cause: error, status });
  if (error instanceof errors.InvalidArgumentError) return error;
  if (error instanceof errors.HeadersOverflowError) {
    return failed('bad_answer', 'the head of the answer is too long');
  }
  if (notHttp.some((kind) => error instanceof kind) || notHttpTexts.has(error.message)) {
    return failed('bad_answer', 'the answer is not HTTP/1.1');
  }
  return failed('connection_lost', 'the connection ended before the answer did');
}
