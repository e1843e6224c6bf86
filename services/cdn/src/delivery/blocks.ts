import { ObjectStoreError, type ObjectStore } from '@millrace/objects';
import { type Metrics } from '@millrace/platform';
import { GenerationCache } from '../generation-cache.ts';
import { createByteGate } from './byte-gate.ts';

/** Where the bytes of one answer lie: a range of an object that never changes. */
export interface Block {
  key: string;
  offset: number;
  bytes: number;
}

/** Blocks of the object store, through a byte-bounded memory cache. */
export interface Blocks {
  /** The bytes when they are in memory. */
  cached(block: Block): Buffer | undefined;
  /**
   * The bytes, fetched once for any number of callers. Rejects with the signal's reason when it aborts; the
   * fetch goes on while anybody else waits for it and is given up, with its connection, when nobody does.
   * @throws {ObjectStoreError} as the store says, `unavailable` also for a body of the wrong length
   */
  fetch(block: Block, signal: AbortSignal): Promise<Buffer>;
  /** Gives every fetch up. */
  close(): void;
}

export interface BlocksDeps {
  objects: ObjectStore;
  metrics: Metrics;
  /** Bound of the memory for blocks that are kept, in bytes. */
  cacheBytes: number;
  /** Bound of the memory for blocks that are being fetched, in bytes; more wait. */
  fetchBytes: number;
  /** A fetch that takes longer than this in all is given up. */
  timeoutMs: number;
}

interface Flight {
  result: Promise<Buffer>;
  waiting: number;
  abort: AbortController;
}

const attempts = 2;
const nothing = Buffer.alloc(0);
const overheadBytes = 300;

export function createBlocks(deps: BlocksDeps): Blocks {
  const { objects, metrics } = deps;
  const cache = new GenerationCache<Buffer>(deps.cacheBytes);
  const gate = createByteGate(deps.fetchBytes);
  const flights = new Map<string, Flight>();
  const fetches = metrics.counter(
    'millrace_cdn_store_fetches_total',
    'Fetches from the object store, by outcome.',
    ['outcome'],
  );
  metrics.observe('millrace_cdn_block_cache_bytes', 'Memory of cached blocks.', () => cache.bytes);

  /** Two tries: a connection that breaks in mid-body is nobody's fault and costs the viewer a stall. */
  const fetchPatiently = async (block: Block, signal: AbortSignal): Promise<Buffer> => {
    for (let attempt = 1; ; attempt++) {
      try {
        const body = await readBlock(objects, block, signal);
        fetches.inc({ outcome: 'ok' });
        return body;
      } catch (error) {
        fetches.inc({ outcome: signal.aborted ? 'aborted' : 'failed' });
        const retry = error instanceof ObjectStoreError && error.code === 'unavailable' && !signal.aborted;
        if (!retry || attempt === attempts) throw error;
      }
    }
  };

  const takeOff = (name: string, block: Block): Flight => {
    const abort = new AbortController();
    const timeout = AbortSignal.timeout(deps.timeoutMs);
    const signal = AbortSignal.any([abort.signal, timeout]);
    const fly = async (): Promise<Buffer> => {
      const leave = await gate.enter(block.bytes, signal);
      try {
        const body = await fetchPatiently(block, signal);
        cache.set(name, body, body.length + overheadBytes);
        return body;
      } finally {
        leave();
      }
    };
    const result = fly().catch((error: unknown) => {
      if (!timeout.aborted || abort.signal.aborted) throw error;
      throw new ObjectStoreError('unavailable', `reading ${block.key} took too long`, { cause: error });
    });
    const flight: Flight = { result, waiting: 0, abort };
    flights.set(name, flight);
    const land = (): void => {
      if (flights.get(name) === flight) flights.delete(name);
    };
    flight.result.then(land, land);
    return flight;
  };

  return {
    // No range of an object is empty (RFC 9110 §14.1.2), so that nothing could be asked for.
    cached: (block) => (block.bytes === 0 ? nothing : cache.get(nameOf(block))),
    async fetch(block, signal) {
      signal.throwIfAborted();
      const name = nameOf(block);
      const flight = flights.get(name) ?? takeOff(name, block);
      flight.waiting++;
      try {
        return await unlessAborted(flight.result, signal);
      } finally {
        flight.waiting--;
        if (flight.waiting === 0 && signal.aborted) {
          // Whoever asks next starts anew instead of joining a fetch that is being given up.
          if (flights.get(name) === flight) flights.delete(name);
          flight.abort.abort(signal.reason);
        }
      }
    },
    close() {
      for (const { abort } of flights.values()) abort.abort(new Error('the CDN is stopping'));
    },
  };
}

const nameOf = ({ key, offset, bytes }: Block): string => `${key}:${offset}:${bytes}`;

async function readBlock(objects: ObjectStore, block: Block, signal: AbortSignal): Promise<Buffer> {
  const { key, offset, bytes } = block;
  const range = { start: offset, end: offset + bytes - 1 };
  const { stream, sizeBytes } = await objects.get(key, { range, signal });
  // Its own slab, so that a small block in the cache does not keep a pool alive.
  const body = Buffer.allocUnsafeSlow(bytes);
  let filled = 0;
  try {
    if (sizeBytes !== bytes) throw wrongLength(block, sizeBytes);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (filled + chunk.length > bytes) throw wrongLength(block, filled + chunk.length);
      filled += chunk.copy(body, filled);
    }
    if (filled !== bytes) throw wrongLength(block, filled);
    return body;
  } catch (error) {
    if (signal.aborted || error instanceof ObjectStoreError) throw error;
    throw new ObjectStoreError('unavailable', `reading ${key} broke off`, { cause: error });
  } finally {
    stream.destroy();
  }
}

const wrongLength = ({ key, bytes }: Block, got: number): ObjectStoreError =>
  new ObjectStoreError('unavailable', `a block of ${key} has ${got} bytes instead of ${bytes}`);

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
