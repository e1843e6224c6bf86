import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { type ObjectStore, ObjectStoreError } from '@millrace/objects';
import { type Clock, type Logger } from '@millrace/platform';
import { blockBytes, Blocks } from './blocks.ts';

export interface BlockReaderOptions {
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  /** Bytes of blocks kept for each open source; at least two blocks are. */
  cacheBytes: number;
  /** Waits between the tries of one block, in milliseconds. */
  retryWaitsMs?: readonly number[];
  /** How long a try may go without a byte, in milliseconds. */
  idleMs?: number;
}

/** A source that ffmpeg can read at `url` until it is closed. */
export interface OpenSource {
  url: string;
  sizeBytes: number;
  /** The object's, quoted. */
  etag: string;
  /** Set once the store failed a block for good: then nobody has seen the whole source. */
  failure(): ObjectStoreError | undefined;
  /** Bytes handed to readers so far: it rises while they read on. */
  servedBytes(): number;
  close(): void;
}

const defaultIdleMs = 10_000;
/** Longest outage of the object store that ffmpeg does not notice: their sum, about a minute. */
const defaultRetryWaitsMs = [200, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

interface Entry {
  blocks: Blocks;
  sizeBytes: number;
  servedBytes: number;
}

/**
 * All that ffmpeg may read: a server on loopback, over ranges of the object store. Each source has a secret
 * path of its own that ends with it, so that a file which talks ffmpeg into other requests finds nothing here
 * (design.md, "Encoding": Input).
 */
export class BlockReader {
  readonly #options: BlockReaderOptions;
  readonly #sources = new Map<string, Entry>();
  readonly #server: Server;

  constructor(options: BlockReaderOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        // Cut off: ffmpeg must not take what it has for all there is.
        if (!response.destroyed) options.logger.debug({ err: error }, 'block reader answer cut off');
        response.destroy();
      });
    });
    this.#server.keepAliveTimeout = 30_000;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /**
   * Makes an object readable.
   * @throws ObjectStoreError `no_such_key` when it is not there, `unavailable` when the store is not
   */
  async open(key: string): Promise<OpenSource> {
    const { objects, clock, cacheBytes, retryWaitsMs, idleMs } = this.#options;
    const head = await objects.head(key);
    if (head === null) throw new ObjectStoreError('no_such_key', 'the source is not in the object store');
    const closing = new AbortController();
    const blocks = new Blocks({
      objects,
      clock,
      key,
      sizeBytes: head.sizeBytes,
      capacity: Math.max(2, Math.floor(cacheBytes / blockBytes)),
      retryWaitsMs: retryWaitsMs ?? defaultRetryWaitsMs,
      idleMs: idleMs ?? defaultIdleMs,
      signal: closing.signal,
    });
    const path = `/${randomBytes(24).toString('hex')}/source`;
    const entry: Entry = { blocks, sizeBytes: head.sizeBytes, servedBytes: 0 };
    this.#sources.set(path, entry);
    const { port } = this.#server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}${path}`,
      sizeBytes: head.sizeBytes,
      etag: head.etag,
      failure: () => blocks.failure,
      servedBytes: () => entry.servedBytes,
      close: () => {
        this.#sources.delete(path);
        closing.abort(new Error('the source was closed'));
      },
    };
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const source = this.#sources.get(request.url ?? '');
    if (source === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(404).end();
      return;
    }
    const { sizeBytes } = source;
    const range = parseRange(request.headers.range, sizeBytes);
    if (range === 'unsatisfiable') {
      response.writeHead(416, { 'Content-Range': `bytes */${sizeBytes}` }).end();
      return;
    }
    const { start, end } = range ?? { start: 0, end: sizeBytes - 1 };
    response.writeHead(range === undefined ? 200 : 206, {
      'Accept-Ranges': 'bytes',
      'Content-Type': 'application/octet-stream',
      'Content-Length': end - start + 1,
      ...(range === undefined ? {} : { 'Content-Range': `bytes ${start}-${end}/${sizeBytes}` }),
    });
    if (request.method === 'GET') await send(source, { start, end }, response);
    response.end();
  }
}

/** Writes the inclusive range; stops quietly when the reader goes away (ffmpeg does so at each seek). */
async function send(
  source: Entry,
  { start, end }: { start: number; end: number },
  response: ServerResponse,
): Promise<void> {
  for await (const piece of source.blocks.read(start, end)) {
    if (response.destroyed) return;
    source.servedBytes += piece.length;
    if (!response.write(piece)) await drained(response);
  }
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
    if (response.destroyed) done();
  });

/** One `bytes=a-b` or `bytes=a-` (RFC 9110 §14.1.2), all that ffmpeg sends; any other header is ignored. */
function parseRange(
  header: string | undefined,
  sizeBytes: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(header ?? '');
  if (match === null) return undefined;
  const start = Number(match[1]);
  const end = Math.min(match[2] === undefined ? Infinity : Number(match[2]), sizeBytes - 1);
  return start >= sizeBytes || end < start ? 'unsatisfiable' : { start, end };
}
