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

/** Told of a block that is on its way: its memory, of which the first `filled` bytes are there. */
export type OnBytes = (block: Buffer, filled: number) => void;

/** Blocks of the object store, through a byte-bounded memory cache. */
export interface Blocks {
  /** The bytes when they are in memory. */
  cached(block: Block): Buffer | undefined;
  /**
   * The bytes, fetched once for any number of callers. Rejects with the signal's reason when it aborts; the
   * fetch goes on while anybody else waits for it and is given up, with its connection, when nobody does.
   * @param onBytes called each time that more is there, at once with what others' fetch has so far; what it throws
   *   this call rejects with
   * @throws {ObjectStoreError} as the store says, `unavailable` also for a body of the wrong length
   */
  fetch(block: Block, signal: AbortSignal, onBytes?: OnBytes): Promise<Buffer>;
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
  filling: Filling;
}

/** The memory of a block that is being fetched, and who is told of each piece. */
interface Filling {
  body: Buffer;
  filled: number;
  listeners: Set<OnBytes>;
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
  for (const outcome of ['ok', 'failed', 'aborted']) fetches.inc({ outcome }, 0);
  metrics.observe('millrace_cdn_block_cache_bytes', 'Memory of cached blocks.', () => cache.bytes);

  /** Two tries, the second for what the first left: a connection that breaks in mid-body is nobody's fault. */
  const fetchPatiently = async (block: Block, filling: Filling, signal: AbortSignal): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        await fill(filling, { objects, block, signal });
        fetches.inc({ outcome: 'ok' });
        return;
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
    const filling: Filling = { body: nothing, filled: 0, listeners: new Set() };
    const fly = async (): Promise<Buffer> => {
      const leave = await gate.enter(block.bytes, signal);
      try {
        // Its own slab, so that a small block in the cache does not keep a pool alive.
        filling.body = Buffer.allocUnsafeSlow(block.bytes);
        await fetchPatiently(block, filling, signal);
        cache.set(name, filling.body, block.bytes + overheadBytes);
        return filling.body;
      } finally {
        leave();
      }
    };
    const result = fly().catch((error: unknown) => {
      if (!timeout.aborted || abort.signal.aborted) throw error;
      throw new ObjectStoreError('unavailable', `reading ${block.key} took too long`, { cause: error });
    });
    const flight: Flight = { result, waiting: 0, abort, filling };
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
    async fetch(block, signal, onBytes) {
      signal.throwIfAborted();
      const name = nameOf(block);
      const flight = flights.get(name) ?? takeOff(name, block);
      const { filling } = flight;
      const listener = onBytes && guarded(onBytes);
      if (listener) listener.tell(filling.body, filling.filled);
      if (listener) filling.listeners.add(listener.tell);
      flight.waiting++;
      try {
        return await unlessAborted(
          Promise.race([flight.result, ...(listener ? [listener.failed] : [])]),
          signal,
        );
      } finally {
        flight.waiting--;
        if (listener) filling.listeners.delete(listener.tell);
        // What is there in full is kept, though its last viewer went the moment that it was.
        if (flight.waiting === 0 && signal.aborted && filling.filled < block.bytes) {
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

/** Reads what is missing of a block. */
async function fill(
  filling: Filling,
  { objects, block, signal }: { objects: ObjectStore; block: Block; signal: AbortSignal },
): Promise<void> {
  const { key, offset, bytes } = block;
  const before = filling.filled;
  const range = { start: offset + before, end: offset + bytes - 1 };
  const { stream, sizeBytes } = await objects.get(key, { range, signal });
  try {
    if (sizeBytes !== bytes - before) throw wrongLength(block, before + sizeBytes);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (filling.filled + chunk.length > bytes) throw wrongLength(block, filling.filled + chunk.length);
      filling.filled += chunk.copy(filling.body, filling.filled);
      for (const tell of filling.listeners) tell(filling.body, filling.filled);
    }
    if (filling.filled !== bytes) throw wrongLength(block, filling.filled);
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

/** One caller's trouble is its own: the fetch goes on for the others. */
function guarded(onBytes: OnBytes): { tell: OnBytes; failed: Promise<never> } {
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  return {
    failed: failure.promise,
    tell: (block, filled) => {
      if (filled === 0) return;
      try {
        onBytes(block, filled);
      } catch (error) {
        failure.reject(error);
      }
    },
  };
}
