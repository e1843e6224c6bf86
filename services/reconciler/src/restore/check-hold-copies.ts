import { hash } from 'node:crypto';
import { type Clock } from '@millrace/platform';
import { copyHoldAgain, isStrayCopy, recordTime, type StandingHold, standingHolds } from '@millrace/store';
import { type ReconcileLoop } from '../loops/loop.ts';
import { bytesOf, Each, keyOf, type ListedCopy, listCopies, parseCopy, readCopy } from './copies.ts';
import { type RestoreDeps, type RestoreGuard } from './marks.ts';

const everyMs = 600_000;
const atOnce = 1_000;
/** Younger ones may be of holds that the record did not know when it was read. */
const strayAgeMs = 3_600_000;

type Deps = RestoreDeps & { clock: Clock };

/**
 * Compares the copies with the record, since the store does not refuse what a former leader writes late: a copy that it
 * deleted or wrote over is made again, and one that it brought back goes. None goes of a restored record while the
 * copies may know more than it does.
 */
export function checkHoldCopiesLoop(deps: Deps, guard: RestoreGuard): ReconcileLoop {
  return guard.checked({
    name: 'check-hold-copies',
    everyMs,
    run: async (signal) => {
      const each = new Each({ ...deps, signal });
      const at = await recordTime(deps.store);
      const copies = await listCopies(deps.objects, signal);
      const again = await copyAgain(deps, each, { at, copies });
      // Those of standing holds are no longer among them.
      const gone = await deleteStray(deps, each, copies.values());
      each.end();
      return again + gone;
    },
  });
}

/** Has those copied again whose copy is missing or another, and takes the copies of standing holds out of `copies`. */
async function copyAgain(
  { store, objects }: Deps,
  each: Each,
  { at, copies }: { at: string; copies: Map<string, ListedCopy> },
): Promise<number> {
  let again = 0;
  const look = async (hold: StandingHold): Promise<void> => {
    const key = keyOf(hold);
    const listed = copies.get(key);
    copies.delete(key);
    if (!hold.copied) return;
    const wanted = bytesOf(hold);
    if (listed?.etag === `"${hash('md5', wanted)}"`) return;
    // An ETag that is no digest (S3 with keys of KMS) says nothing.
    if (listed !== undefined && (await readCopy(objects, key))?.equals(wanted) === true) return;
    await copyHoldAgain(store, hold.id, at);
    again += 1;
  };
  for (let after: StandingHold | undefined; ;) {
    const holds = await standingHolds(store, { at, after, limit: atOnce });
    for (const hold of holds) await each.try(keyOf(hold), () => look(hold));
    after = holds.at(-1);
    if (after === undefined) return again;
  }
}

async function deleteStray(
  { store, objects, clock, logger }: Deps,
  each: Each,
  copies: Iterable<ListedCopy>,
): Promise<number> {
  const before = clock.now().getTime() - strayAgeMs;
  let gone = 0;
  for (const { key, lastModified } of copies) {
    if (lastModified.getTime() > before) continue;
    await each.try(key, async () => {
      const copy = parseCopy(key, await readCopy(objects, key));
      // It may be one of a later version's.
      if (copy === null) logger.warn({ key }, 'what lies among the copies of holds cannot be read');
      else if (await isStrayCopy(store, copy)) {
        await objects.deleteMany([key]);
        gone += 1;
      }
    });
  }
  return gone;
}
