import { hash } from 'node:crypto';
import { ProblemError } from '@millrace/contract';
import { type ObjectStore, ObjectStoreError } from '@millrace/objects';
import {
  createHoldCommands,
  type HoldCopy,
  holdCopy,
  holdsRestored,
  holdsToCopy,
  markHoldCopied,
  recordState,
} from '@millrace/store';
import { type ReconcileLoop } from '../loops/loop.ts';
import { type RestoreDeps, type RestoreGuard } from './marks.ts';

const prefix = 'record/holds/';
const atOnce = 500;
const largestBytes = 64 * 1024;

/** By what a hold is, not by its id: one that is placed again has the same copy, which goes when it is lifted. */
const keyOf = ({ videoId, source, reference }: HoldCopy): string =>
  prefix + hash('sha256', JSON.stringify([videoId, source, reference]));

/**
 * Keeps a copy of every standing hold in the bucket, beside the record. A record that came back from a backup gets back
 * from it the holds that were placed since.
 */
export function holdCopiesLoop(deps: RestoreDeps, guard: RestoreGuard): ReconcileLoop {
  return {
    name: 'hold-copies',
    everyMs: 2_000,
    run: async (signal) => {
      // A hold that is placed again has to be told by a version that is above those of the life before.
      await guard.check();
      // Before any copy is changed: those of the life before are what is wanted.
      const placed = (await recordState(deps.store)).holdsWanted ? await placeAgain(deps, signal) : 0;
      return placed + (await copy(deps));
    },
  };
}

async function copy({ store, objects }: RestoreDeps): Promise<number> {
  const holds = await holdsToCopy(store, atOnce);
  for (const hold of holds) {
    const { standing, ...copied } = hold;
    if (standing) await objects.put(keyOf(hold), Buffer.from(JSON.stringify(copied)));
    else await objects.deleteMany([keyOf(hold)]);
    await markHoldCopied(store, hold);
  }
  return holds.length;
}

async function placeAgain(deps: RestoreDeps, signal: AbortSignal): Promise<number> {
  const { store, objects, logger } = deps;
  const holds = createHoldCommands(store);
  let placed = 0;
  for (let next: string | null = null; ;) {
    const page = await objects.list(prefix, next ?? undefined);
    for (const { key } of page.items) {
      signal.throwIfAborted();
      const copied = await read(objects, key);
      if (copied === null) {
        logger.error({ key }, 'the copy of a hold cannot be read');
        continue;
      }
      const { id, ...hold } = copied;
      try {
        await holds.place(hold, 'restore');
        placed += 1;
      } catch (error) {
        // The backup does not know the video, or knows it failed: there is nothing to play.
        if (!(error instanceof ProblemError)) throw error;
        logger.warn({ err: error, holdId: id, videoId: hold.videoId }, 'a hold was not placed again');
      }
    }
    next = page.next;
    if (next === null) break;
  }
  await holdsRestored(store);
  logger.warn({ placed }, 'holds were placed again from their copies');
  return placed;
}

/** Null for what is no copy of a hold, or gone since it was listed: the others come back all the same. */
async function read(objects: ObjectStore, key: string): Promise<HoldCopy | null> {
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
  try {
    return holdCopy.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  } catch {
    return null;
  }
}
