import { deliveryIndex } from '@millrace/contract';
import { ObjectStoreError, type ObjectStore } from '@millrace/objects';
import { GenerationCache } from '../generation-cache.ts';
import { Delivery } from './delivery.ts';

/** Finished encodes by the object key of their delivery index, read and parsed once each. */
export interface Deliveries {
  /** The delivery when it is in memory. */
  cached(indexKey: string): Delivery | undefined;
  /**
   * Reads it, once for any number of callers.
   * @throws {ObjectStoreError} as the store says; an index that does not parse or is another video's is an Error
   */
  load(indexKey: string, videoId: string): Promise<Delivery>;
}

/** 24 hours in five qualities and a few languages take about 4 MB. */
const maximumIndexBytes = 32 * 1024 * 1024;

/** An index in memory, with its playlists cut at their links, takes about this many times its JSON. */
const memoryFactor = 8;

/**
 * @param options.maximumBytes bound of the memory for indexes and playlists
 * @param options.timeoutMs a read that takes longer is given up
 */
export function createDeliveries(
  objects: ObjectStore,
  options: { maximumBytes: number; timeoutMs: number },
): Deliveries {
  const cache = new GenerationCache<Delivery>(options.maximumBytes);
  const loading = new Map<string, Promise<Delivery>>();

  const load = async (indexKey: string, videoId: string): Promise<Delivery> => {
    const text = await readText(objects, indexKey, AbortSignal.timeout(options.timeoutMs));
    const index = deliveryIndex.parse(JSON.parse(text));
    if (index.videoId !== videoId) throw new Error(`delivery index ${indexKey} is not of ${videoId}`);
    const delivery = new Delivery(index);
    cache.set(indexKey, delivery, text.length * memoryFactor);
    return delivery;
  };

  return {
    cached: (indexKey) => cache.get(indexKey),
    load(indexKey, videoId) {
      const running = loading.get(indexKey);
      if (running !== undefined) return running;
      const result = load(indexKey, videoId).finally(() => loading.delete(indexKey));
      loading.set(indexKey, result);
      return result;
    },
  };
}

async function readText(objects: ObjectStore, key: string, signal: AbortSignal): Promise<string> {
  const { stream, sizeBytes } = await objects.get(key, { signal });
  try {
    if (sizeBytes > maximumIndexBytes) throw new Error(`delivery index ${key} has ${sizeBytes} bytes`);
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    if (error instanceof ObjectStoreError) throw error;
    throw new ObjectStoreError('unavailable', `reading ${key} broke off`, { cause: error });
  } finally {
    stream.destroy();
  }
}
