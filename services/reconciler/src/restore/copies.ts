import { hash } from 'node:crypto';
import { type ObjectStore, ObjectStoreError } from '@millrace/objects';
import { type Logger } from '@millrace/platform';
import { type HoldCopy, holdCopy } from '@millrace/store';

const prefix = 'record/holds/';
const largestBytes = 64 * 1024;
/** So many at a stretch that fail are the store that is away, and each would wait for its time limit. */
const mostFailures = 20;

/** By what a hold is, not by its id: one that is placed again has the same copy, which goes when it is lifted. */
export const keyOf = ({ videoId, source, reference }: HoldCopy): string =>
  prefix + hash('sha256', JSON.stringify([videoId, source, reference]));

/** The bytes of a hold's copy. */
export const bytesOf = ({ id, videoId, source, reference, reason, legal }: HoldCopy): Buffer =>
  Buffer.from(JSON.stringify({ id, videoId, source, reference, reason, legal }));

/** What a listing says of a copy. */
export interface ListedCopy {
  key: string;
  etag: string;
  lastModified: Date;
}

/** All copies, by key; some 200 bytes of memory each. */
export async function listCopies(
  objects: ObjectStore,
  signal: AbortSignal,
): Promise<Map<string, ListedCopy>> {
  const found = new Map<string, ListedCopy>();
  for (let next: string | null = null; ;) {
    signal.throwIfAborted();
    const page = await objects.list(prefix, next ?? undefined);
    for (const { key, etag, lastModified } of page.items) found.set(key, { key, etag, lastModified });
    next = page.next;
    if (next === null) return found;
  }
}

/** Null when it is gone since it was listed, or what lies there is larger than any copy. */
export async function readCopy(objects: ObjectStore, key: string): Promise<Buffer | null> {
  const found = await objects.get(key).catch((error: unknown) => {
    if (error instanceof ObjectStoreError && error.code === 'no_such_key') return null;
    throw error;
  });
  if (found === null) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of found.stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largestBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The hold that a copy is of; null for what is none, so that the others come back all the same. */
export function parseCopy(key: string, bytes: Buffer | null): HoldCopy | null {
  if (bytes === null) return null;
  try {
    const copy = holdCopy.parse(JSON.parse(bytes.toString('utf8')));
    return keyOf(copy) === key ? copy : null;
  } catch {
    return null;
  }
}

/** Does something for each of many; those that fail are told, and keep the others from nothing. */
export class Each {
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  #failed = 0;
  #inARow = 0;
  #last: unknown;

  constructor({ logger, signal }: { logger: Logger; signal: AbortSignal }) {
    this.#logger = logger;
    this.#signal = signal;
  }

  /** @throws when the store seems to be away, and when the loop is to stop */
  async try(key: string, work: () => Promise<void>): Promise<void> {
    this.#signal.throwIfAborted();
    try {
      await work();
      this.#inARow = 0;
    } catch (error) {
      this.#logger.error({ err: error, key }, 'the copy of a hold was not seen to');
      this.#failed += 1;
      this.#inARow += 1;
      this.#last = error;
      if (this.#inARow >= mostFailures) this.end();
    }
  }

  /** @throws when anything failed, so that the loop is red and is tried again */
  end(): void {
    if (this.#failed > 0)
      throw new Error(`${this.#failed} copies of holds were not seen to`, { cause: this.#last });
  }
}
