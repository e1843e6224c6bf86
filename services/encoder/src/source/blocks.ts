import { type Readable } from 'node:stream';
import { type ObjectStore, ObjectStoreError } from '@millrace/objects';
import { type Clock } from '@millrace/platform';

/** One ranged request of the object store; a multiple of the part size's unit, so parts are not straddled. */
export const blockBytes = 8 * 1024 * 1024;

/** A block in the pieces that the store gave: joining them would cost as much as all else here. */
type Block = readonly Buffer[];

export interface BlocksOptions {
  objects: ObjectStore;
  clock: Clock;
  key: string;
  sizeBytes: number;
  /** Blocks kept, the least recently used leave first. At least 2. */
  capacity: number;
  /** Waits between the tries of one block, in milliseconds. One more try than waits. */
  retryWaitsMs: readonly number[];
  /** How long a try may go without a byte, in milliseconds. */
  idleMs: number;
  signal: AbortSignal;
}

/**
 * The source object in blocks of 8 MiB: each fetched once for any number of readers, the recent ones kept,
 * the next one fetched ahead. A fetch that the store fails is tried again; one that it fails for good is
 * remembered in `failure`, because ffmpeg alone takes a broken connection for the end of the file.
 */
export class Blocks {
  readonly #options: BlocksOptions;
  /** Insertion order is the order of last use. */
  readonly #blocks = new Map<number, Promise<Block>>();
  #failure: ObjectStoreError | undefined;

  constructor(options: BlocksOptions) {
    this.#options = options;
  }

  /** Why a block could not be had in the end; then whatever read the source has not seen all of it. */
  get failure(): ObjectStoreError | undefined {
    return this.#failure;
  }

  /** The bytes of an inclusive range, in pieces; each block is fetched when its turn comes, and the next one too. */
  async *read(start: number, end: number): AsyncGenerator<Buffer> {
    for (let at = start; at <= end;) {
      const number = Math.floor(at / blockBytes);
      const blockStart = number * blockBytes;
      const until = Math.min(end + 1, blockStart + blockBytes);
      let pieceStart = blockStart;
      for (const piece of await this.#get(number)) {
        const pieceEnd = pieceStart + piece.length;
        if (pieceEnd > at && pieceStart < until) {
          yield piece.subarray(Math.max(0, at - pieceStart), Math.min(piece.length, until - pieceStart));
        }
        pieceStart = pieceEnd;
      }
      at = until;
    }
  }

  #get(number: number): Promise<Block> {
    const block = this.#load(number);
    const next = number + 1;
    if (next * blockBytes < this.#options.sizeBytes && !this.#blocks.has(next)) {
      // Whoever needs it sees its failure; read ahead, nobody may.
      this.#load(next).catch(() => undefined);
      this.#touch(number);
    }
    return block;
  }

  #load(number: number): Promise<Block> {
    const known = this.#blocks.get(number);
    if (known !== undefined) {
      this.#touch(number);
      return known;
    }
    const block = this.#fetch(number);
    this.#blocks.set(number, block);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= this.#options.capacity) break;
      this.#blocks.delete(oldest);
    }
    block.catch(() => {
      if (this.#blocks.get(number) === block) this.#blocks.delete(number);
    });
    return block;
  }

  #touch(number: number): void {
    const block = this.#blocks.get(number);
    if (block === undefined) return;
    this.#blocks.delete(number);
    this.#blocks.set(number, block);
  }

  async #fetch(number: number): Promise<Block> {
    const { clock, retryWaitsMs, signal } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#fetchOnce(number);
      } catch (error) {
        signal.throwIfAborted();
        const waitMs = retryWaitsMs[attempt];
        const failure = asStoreError(error);
        if (failure.code !== 'unavailable' || waitMs === undefined) {
          this.#failure ??= failure;
          throw failure;
        }
        await clock.sleep(waitMs, signal);
      }
    }
  }

  async #fetchOnce(number: number): Promise<Block> {
    const { objects, key, sizeBytes, idleMs, signal } = this.#options;
    const start = number * blockBytes;
    const end = Math.min(start + blockBytes, sizeBytes) - 1;
    const idle = new AbortController();
    const timer = setTimeout(() => {
      idle.abort(new ObjectStoreError('unavailable', `nothing came for ${idleMs} ms`));
    }, idleMs);
    try {
      const either = AbortSignal.any([signal, idle.signal]);
      const body = await objects.get(key, { range: { start, end }, signal: either });
      either.addEventListener('abort', () => body.stream.destroy(either.reason as Error), { once: true });
      if (body.totalBytes !== sizeBytes) {
        body.stream.destroy();
        const message = `the source has ${body.totalBytes} bytes, not ${sizeBytes} as when it was opened`;
        throw new ObjectStoreError('no_such_key', message);
      }
      return await readExactly(body.stream, end - start + 1, () => timer.refresh());
    } finally {
      clearTimeout(timer);
    }
  }
}

/** What is no error of the store's own is a connection that broke. */
const asStoreError = (error: unknown): ObjectStoreError =>
  error instanceof ObjectStoreError
    ? error
    : new ObjectStoreError('unavailable', 'the object could not be read', { cause: error });

/** Reads `length` bytes; a stream that ends sooner or goes on is an error (a connection cut in the middle). */
async function readExactly(stream: Readable, length: number, onBytes: () => void): Promise<Block> {
  const pieces: Buffer[] = [];
  let received = 0;
  for await (const piece of stream as AsyncIterable<Buffer>) {
    onBytes();
    received += piece.length;
    if (received > length) break;
    pieces.push(piece);
  }
  if (received !== length) throw new Error(`the object store sent ${received} bytes of a range of ${length}`);
  return pieces;
}
