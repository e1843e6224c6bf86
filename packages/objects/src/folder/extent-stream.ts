import { type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { ObjectStoreError } from '../object-store.ts';
import { translate } from './files.ts';

/** A run of bytes in a file. `open` is called when its turn comes; the stream closes what it opened. */
export interface Extent {
  open: () => Promise<FileHandle>;
  position: number;
  length: number;
}

const chunkBytes = 256 * 1024;

/**
 * The extents' bytes one after the other; at most two chunks are in memory. A file that is shorter than promised
 * is an error: the reader never takes a cut body for a whole one.
 */
export class ExtentStream extends Readable {
  readonly #extents: Iterator<Extent>;
  #current: { file: FileHandle; position: number; left: number } | null = null;

  readonly #held: FileHandle | undefined;

  /** `held` is an open file of an extent: it is closed at the end even when its turn never came. */
  constructor(extents: Iterable<Extent>, held?: FileHandle) {
    super({ highWaterMark: chunkBytes });
    this.#extents = extents[Symbol.iterator]();
    this.#held = held;
  }

  override _read(): void {
    this.#next().then(
      (chunk) => this.push(chunk),
      (error: unknown) => this.destroy(translate(error) as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    Promise.all([this.#close(), this.#held?.close()]).then(
      () => callback(error),
      (failed: unknown) => callback(error ?? (failed as Error)),
    );
  }

  async #next(): Promise<Buffer | null> {
    while (this.#current === null || this.#current.left === 0) {
      await this.#close();
      const next = this.#extents.next();
      if (next.done) return null;
      const { open, position, length } = next.value;
      this.#current = { file: await open(), position, left: length };
      // Destroyed while the file was being opened: nobody else would close it.
      if (this.destroyed) await this.#close();
      if (this.destroyed) return null;
    }
    const current = this.#current;
    const wanted = Math.min(chunkBytes, current.left);
    const { bytesRead, buffer } = await current.file.read(
      Buffer.allocUnsafeSlow(wanted),
      0,
      wanted,
      current.position,
    );
    if (bytesRead === 0)
      throw new ObjectStoreError('unavailable', 'a file of the object folder is cut short');
    current.position += bytesRead;
    current.left -= bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  async #close(): Promise<void> {
    const file = this.#current?.file;
    this.#current = null;
    await file?.close();
  }
}
