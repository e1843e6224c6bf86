import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type ErrorCode } from '@millrace/contract';
import { type OnBytes } from '../delivery/blocks.ts';
import { readHead, type RequestHead } from './head.ts';
import { type Refusals } from './refusals.ts';
import { parseRange } from './range.ts';

/** Headers of an answer as `writeHead` takes them flat: name, value, name, value. */
export type FlatHeaders = (string | number)[];

const exposed = 'X-Svc-Error, Content-Range, Content-Length, Retry-After';
/** A viewer that takes no byte for this long is let go. */
const stuckMs = 30_000;
/** Below this an answer fits the kernel's buffers: there is nothing to watch. */
const watchedBytes = 64 * 1024;

/** The body of an answer: bytes, or text that is made only when it is sent. */
export type Body = Buffer | (() => string);

/** Reports bytes handed to the kernel for a viewer, as they are taken. */
export interface Metering {
  /** So many bytes go out by a write of their own, however small the answer: what is told apart is sent apart. */
  splitAt: number;
  sent: (bytes: number) => void;
}

/** Bounds the memory of answers that viewers have not taken yet. */
export class SendBudget {
  readonly #maximum: number;
  #held = 0;

  constructor(maximumBytes: number) {
    this.#maximum = maximumBytes;
  }

  /** Takes the bytes until `response` is through or broken off; false when there is no room. */
  hold(bytes: number, response: ServerResponse): boolean {
    if (this.#held + bytes > this.#maximum) return false;
    this.#held += bytes;
    response.once('close', () => {
      this.#held -= bytes;
    });
    return true;
  }

  get held(): number {
    return this.#held;
  }
}

/** What all exchanges of a server share. */
export interface ExchangeShared {
  refusals: Refusals;
  budget: SendBudget;
  newRequestId: () => string;
}

/** One request and its answer: writes what the flow decides, with the headers that every answer has. */
export class Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #shared: ExchangeShared;
  readonly head: RequestHead;
  /** For metrics: the route pattern, and the code of a refusal. */
  route = 'unmatched';
  code = '';

  constructor(request: IncomingMessage, response: ServerResponse, shared: ExchangeShared) {
    this.#request = request;
    this.#response = response;
    this.#shared = shared;
    this.head = readHead(request.rawHeaders);
  }

  get method(): string {
    return this.#request.method ?? '';
  }

  get url(): string {
    return this.#request.url ?? '';
  }

  get status(): number {
    return this.#response.statusCode;
  }

  get remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? '';
  }

  /** True when all of a body is asked for, without a condition. */
  get isPlain(): boolean {
    return this.head.range === null && this.head.ifNoneMatch === null;
  }

  /** True when the viewer has gone: nobody waits for an answer. */
  get gone(): boolean {
    return this.#response.destroyed || this.#request.socket.destroyed;
  }

  /** Aborts when the connection goes before the answer is through. */
  whenGone(): AbortSignal {
    const gone = new AbortController();
    this.#response.once('close', () => gone.abort(new Error('the viewer has gone')));
    return gone.signal;
  }

  /** A request header that few routes look at, by its lower-case name; empty where absent. */
  header(name: 'accept' | 'accept-encoding' | 'accept-language'): string {
    return this.#request.headers[name]?.toString() ?? '';
  }

  /**
   * Refuses with a problem body (contract: "Every refused CDN request has header X-Svc-Error"), or with `page`,
   * a document in HTML, in its place.
   */
  refuse(
    code: ErrorCode,
    more: { retryAfterSeconds?: number; headers?: FlatHeaders; page?: Buffer } = {},
  ): void {
    this.code = code;
    if (this.#response.headersSent) {
      // Too late for words; a body that breaks off is at least not taken for a whole one.
      this.#response.destroy();
      return;
    }
    const { status, body: problem } = this.#shared.refusals.of(code);
    const body = more.page ?? problem;
    const headers = this.#headers([
      'Content-Type',
      more.page === undefined ? 'application/problem+json' : 'text/html; charset=utf-8',
      'Cache-Control',
      'no-store',
      'X-Svc-Error',
      code,
      ...(more.headers ?? []),
    ]);
    if (more.retryAfterSeconds !== undefined) headers.push('Retry-After', more.retryAfterSeconds);
    // A body that came with an unserved method is not waited for.
    if (this.method !== 'GET' && this.method !== 'HEAD') headers.push('Connection', 'close');
    this.#write(status, headers, body.length, body);
  }

  /** Answers a CORS preflight; what may be fetched is decided by the request itself. */
  preflight(): void {
    const headers = this.#headers([
      'Access-Control-Allow-Methods',
      'GET, HEAD, OPTIONS',
      'Access-Control-Allow-Headers',
      'Range, If-Range, If-None-Match',
      'Access-Control-Max-Age',
      600,
    ]);
    this.#response.writeHead(204, headers).end();
  }

  /**
   * Answers with a body of `size` bytes, or the part of it that `Range` asks for. With an `etag`, `If-None-Match`
   * and `If-Range` are honoured; without one no condition holds.
   */
  send(
    own: FlatHeaders,
    size: number,
    body: Body | null,
    more: { etag?: string; metering?: Metering } = {},
  ): void {
    const headers = this.#headers(own);
    headers.push('Accept-Ranges', 'bytes');
    if (more.etag !== undefined) headers.push('ETag', more.etag);
    if (more.etag !== undefined && matches(this.head.ifNoneMatch, more.etag)) {
      this.#response.writeHead(304, headers).end();
      return;
    }
    const { range: asked, ifRange } = this.head;
    const range =
      asked === null || (ifRange !== null && ifRange !== more.etag) ? 'all' : parseRange(asked, size);
    if (range === 'unsatisfiable') {
      this.refuse('range_not_satisfiable', { headers: ['Content-Range', `bytes */${size}`] });
    } else if (range === 'all') {
      this.#write(200, headers, size, body, more.metering);
    } else {
      headers.push('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
      const part = body === null ? null : asBuffer(body).subarray(range.start, range.end + 1);
      this.#write(206, headers, range.end - range.start + 1, part, more.metering);
    }
  }

  /**
   * Answers 200 with a body that is still on its way.
   * @returns what is to be called each time that more of it is there
   */
  sendComing(own: FlatHeaders, size: number, more: { etag: string; metering?: Metering }): OnBytes {
    const headers = this.#headers(own);
    headers.push('Accept-Ranges', 'bytes', 'ETag', more.etag);
    if (!this.#begin(200, headers, size)) return () => undefined;
    const { splitAt = size, sent } = more.metering ?? {};
    let written = 0;
    return (body, filled) => {
      while (written < filled) {
        const piece = body.subarray(written, written < splitAt ? Math.min(filled, splitAt) : filled);
        written += piece.length;
        this.#response.write(piece, (error) => {
          if (!error) sent?.(piece.length);
        });
      }
      if (written === size) this.#response.end();
    };
  }

  #headers(own: FlatHeaders): FlatHeaders {
    own.push(
      'Vary',
      'Origin',
      'X-Content-Type-Options',
      'nosniff',
      'X-Request-Id',
      this.#shared.newRequestId(),
    );
    const { origin } = this.head;
    if (origin !== null) {
      own.push('Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposed);
    }
    return own;
  }

  #write(status: number, headers: FlatHeaders, length: number, body: Body | null, metering?: Metering): void {
    const response = this.#response;
    if (body === null || this.method === 'HEAD') {
      headers.push('Content-Length', length);
      response.writeHead(status, headers as string[]).end();
      return;
    }
    if (!this.#begin(status, headers, length)) return;
    if (metering !== undefined) this.#writeMetered(asBuffer(body), metering);
    else if (typeof body === 'function') response.end(body());
    else response.end(body);
  }

  /** Writes the head of an answer with a body; false when there is no memory for one more, which is answered so. */
  #begin(status: number, headers: FlatHeaders, length: number): boolean {
    const response = this.#response;
    const watched = length > watchedBytes;
    if (watched && !this.#shared.budget.hold(length, response)) {
      this.refuse('service_unavailable', { retryAfterSeconds: 1 });
      return false;
    }
    headers.push('Content-Length', length);
    response.writeHead(status, headers as string[]);
    if (watched) response.setTimeout(stuckMs);
    return true;
  }

  #writeMetered(body: Buffer, { splitAt, sent }: Metering): void {
    const response = this.#response;
    const first = Math.min(splitAt, body.length);
    const rest = body.length - first;
    if (rest === 0) {
      response.once('finish', () => sent(body.length));
      response.end(body);
      return;
    }
    response.write(body.subarray(0, first), (error) => {
      if (error) return;
      sent(first);
      response.once('finish', () => sent(rest));
      response.end(body.subarray(first));
    });
  }
}

const asBuffer = (body: Body): Buffer => (typeof body === 'function' ? Buffer.from(body()) : body);

/** `If-None-Match` compares weakly (RFC 9110 §13.1.2): a list of tags, or `*`. */
const matches = (header: string | null, etag: string): boolean =>
  header !== null &&
  header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
