import {
  holdsRestored,
  holdsToCopy,
  type HoldToCopy,
  markHoldCopied,
  recordState,
  restoreHold,
} from '@millrace/store';
import { type ReconcileLoop } from '../loops/loop.ts';
import { bytesOf, Each, keyOf, listCopies, parseCopy, readCopy } from './copies.ts';
import { type RestoreDeps, type RestoreGuard } from './marks.ts';

const atOnce = 500;

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
      return placed + (await copy(deps, signal));
    },
  };
}

async function copy(deps: RestoreDeps, signal: AbortSignal): Promise<number> {
  const each = new Each({ ...deps, signal });
  let copied = 0;
  for (let after: string | undefined = ''; after !== undefined;) {
    const holds: HoldToCopy[] = await holdsToCopy(deps.store, after, atOnce);
    for (const hold of holds) {
      await each.try(keyOf(hold), async () => {
        await copyOne(deps, hold);
        copied += 1;
      });
    }
    after = holds.at(-1)?.id;
  }
  each.end();
  return copied;
}

async function copyOne({ store, objects }: RestoreDeps, hold: HoldToCopy): Promise<void> {
  if (hold.standing) await objects.put(keyOf(hold), bytesOf(hold));
  else if (!hold.succeeded) await objects.deleteMany([keyOf(hold)]);
  await markHoldCopied(store, hold);
}

/** @throws when a hold could not be placed again: all of them are wanted until each was looked at */
async function placeAgain(deps: RestoreDeps, signal: AbortSignal): Promise<number> {
  const { store, objects, logger } = deps;
  const each = new Each({ logger, signal });
  let placed = 0;
  for (const key of (await listCopies(objects, signal)).keys()) {
    await each.try(key, async () => {
      const copied = parseCopy(key, await readCopy(objects, key));
      if (copied === null) {
        logger.error({ key }, 'the copy of a hold cannot be read');
        return;
      }
      const outcome = await restoreHold(store, copied);
      if (outcome === 'placed') placed += 1;
      // The backup does not know the video: there is nothing to play.
      if (outcome === 'unknown')
        logger.warn({ holdId: copied.id, videoId: copied.videoId }, 'a hold was not placed again');
    });
  }
  each.end();
  await holdsRestored(store);
  logger.warn({ placed }, 'holds were placed again from their copies');
  return placed;
}
