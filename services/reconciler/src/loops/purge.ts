import { type ObjectStore } from '@millrace/objects';
import { type Clock, type Logger } from '@millrace/platform';
import {
  type Database,
  doomedPrefixes,
  type DoomedPrefix,
  forgetPrefix,
  markPurged,
  mayPurge,
  type PurgeCursor,
  unknownUploads,
} from '@millrace/store';
import { reconcileAll, type ReconcileLoop, type Reconciler } from './loop.ts';

interface Deps {
  store: Database;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
}

interface SeenPrefix {
  doomed: DoomedPrefix;
  /** A legal hold may have come since it was listed. */
  mayPurge: boolean;
  isEmpty: boolean;
}
export type PurgeDecision = 'purge' | 'forget';

type OpenUpload = Awaited<ReturnType<ObjectStore['listUploads']>>['items'][number];

const prefixesPerRun = 100;
/**
 * An upload that the record does not know may be one that is being started right now, or a large object that an encoder
 * puts in parts.
 */
const orphanAgeMs = 24 * 3_600_000;

/**
 * Deletes the objects of tombstoned prefixes, twice a day apart (design, rule 9). Each run goes on where the one before
 * it ended, so that those that cannot be purged, however many, do not keep the others from being looked at.
 */
export function purgeLoop(deps: Deps): ReconcileLoop {
  const { store, objects } = deps;
  let last: PurgeCursor | null = null;
  const prefixes: Reconciler<DoomedPrefix, SeenPrefix, PurgeDecision> = {
    name: 'purge-objects',
    list: async () => {
      const due = await doomedPrefixes(store, prefixesPerRun, last);
      last = due.length < prefixesPerRun ? null : (due.at(-1) ?? null);
      return due;
    },
    nameOf: ({ prefix }) => prefix,
    observe: async (doomed) => {
      const may = await mayPurge(store, doomed);
      return {
        doomed,
        mayPurge: may,
        isEmpty: may && (await objects.list(doomed.prefix)).items.length === 0,
      };
    },
    decide: decidePurge,
    act: async (decision, { doomed }) => {
      if (doomed.upload) await objects.abort(doomed.upload);
      if (decision === 'forget') await forgetPrefix(store, doomed);
      else {
        await deleteAll(objects, doomed.prefix);
        await markPurged(store, doomed.prefix);
      }
      return false;
    },
  };
  return reconcileAll(prefixes, { ...deps, everyMs: 5_000 });
}

/** What becomes of a tombstoned prefix: it is forgotten only once it was purged a day ago, and nothing came since. */
export function decidePurge(seen: SeenPrefix): PurgeDecision | null {
  if (!seen.mayPurge) return null;
  return seen.doomed.purgedBefore && seen.isEmpty ? 'forget' : 'purge';
}

async function deleteAll(objects: ObjectStore, prefix: string): Promise<void> {
  for (let next: string | null = null; ;) {
    const page = await objects.list(prefix, next ?? undefined);
    await objects.deleteMany(page.items.map((object) => object.key));
    next = page.next;
    if (next === null) return;
  }
}

/** Aborts multipart uploads that the record does not know, a day after they began. */
export function orphanUploadsLoop(deps: Deps): ReconcileLoop {
  const { store, objects, clock } = deps;
  const uploads: Reconciler<OpenUpload, { isKnown: boolean; upload: OpenUpload }, OpenUpload> = {
    name: 'abort-orphan-uploads',
    list: async () => {
      const old: OpenUpload[] = [];
      for (let next: string | null = null; ;) {
        const page = await objects.listUploads(next ?? undefined);
        old.push(
          ...page.items.filter((upload) => clock.now().getTime() - upload.startedAt.getTime() > orphanAgeMs),
        );
        next = page.next;
        if (next === null) return old;
      }
    },
    nameOf: ({ key }) => key,
    observe: async (upload) => ({ isKnown: (await unknownUploads(store, [upload])).length === 0, upload }),
    decide: ({ isKnown, upload }) => (isKnown ? null : upload),
    act: async (upload) => {
      await objects.abort(upload);
      return false;
    },
  };
  return reconcileAll(uploads, { ...deps, everyMs: 3_600_000 });
}
