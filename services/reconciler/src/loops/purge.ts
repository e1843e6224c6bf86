import { type ObjectStore } from '@millrace/objects';
import { type Logger } from '@millrace/platform';
import {
  type Database,
  doomedPrefixes,
  type DoomedPrefix,
  forgetPrefix,
  markPurged,
  mayPurge,
  unknownUploads,
} from '@millrace/store';
import { type ReconcileLoop } from './loop.ts';

const prefixesPerRun = 100;
/**
 * An upload that the record does not know may be one that is being started right now, or a large object that an encoder
 * puts in parts.
 */
const orphanAgeMs = 24 * 3_600_000;

/** Deletes the objects of tombstoned prefixes, twice a day apart (design, rule 9). */
export function purgeLoop(deps: { store: Database; objects: ObjectStore; logger: Logger }): ReconcileLoop {
  return {
    name: 'purge-objects',
    everyMs: 5_000,
    run: async (signal) => {
      let purged = 0;
      for (const doomed of await doomedPrefixes(deps.store, prefixesPerRun)) {
        if (signal.aborted) break;
        if (!(await mayPurge(deps.store, doomed))) continue;
        // One prefix that cannot be purged must not keep the others waiting.
        await purge(deps, doomed).then(
          () => purged++,
          (error: unknown) => deps.logger.error({ err: error, prefix: doomed.prefix }, 'prefix not purged'),
        );
      }
      return purged;
    },
  };
}

async function purge(
  { store, objects }: { store: Database; objects: ObjectStore },
  doomed: DoomedPrefix,
): Promise<void> {
  if (doomed.upload) await objects.abort(doomed.upload);
  let found = 0;
  for (let next: string | null = null; ;) {
    const page = await objects.list(doomed.prefix, next ?? undefined);
    found += page.items.length;
    await objects.deleteMany(page.items.map((object) => object.key));
    next = page.next;
    if (next === null) break;
  }
  if (doomed.purgedBefore && found === 0) await forgetPrefix(store, doomed);
  else await markPurged(store, doomed.prefix);
}

/** Aborts multipart uploads that the record does not know, a day after they began. */
export function orphanUploadsLoop(deps: {
  store: Database;
  objects: ObjectStore;
  now: () => Date;
}): ReconcileLoop {
  return {
    name: 'abort-orphan-uploads',
    everyMs: 3_600_000,
    run: async (signal) => {
      let aborted = 0;
      for (let next: string | null = null; !signal.aborted;) {
        const page = await deps.objects.listUploads(next ?? undefined);
        const old = page.items.filter(
          (upload) => deps.now().getTime() - upload.startedAt.getTime() > orphanAgeMs,
        );
        for (const orphan of await unknownUploads(deps.store, old)) {
          await deps.objects.abort(orphan);
          aborted++;
        }
        next = page.next;
        if (next === null) break;
      }
      return aborted;
    },
  };
}
