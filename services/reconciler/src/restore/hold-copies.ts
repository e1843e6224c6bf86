import { ProblemError } from '@millrace/contract';
import { type ObjectStore } from '@millrace/objects';
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

const keyOf = ({ id }: HoldCopy): string => `${prefix}${id}`;

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
      const { id, ...hold } = await read(objects, key);
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

async function read(objects: ObjectStore, key: string): Promise<HoldCopy> {
  const { stream, sizeBytes } = await objects.get(key);
  if (sizeBytes > largestBytes) throw new Error(`the copy of a hold at ${key} has ${sizeBytes} bytes`);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return holdCopy.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
}
