import { type ObjectStore } from '@millrace/objects';
import { type Logger } from '@millrace/platform';
import { type Database, declareRestored, raiseMark, recordState } from '@millrace/store';
import { type ReconcileLoop } from '../loops/loop.ts';

export interface RestoreDeps {
  store: Database;
  objects: ObjectStore;
  logger: Logger;
}

const prefix = 'record/marks/';
const digits = 16;
const everyMs = 60_000;

const keyOf = (mark: number): string => `${prefix}${String(mark).padStart(digits, '0')}`;

/**
 * Notices a record that came back from a backup, and keeps sweeps from acting on what it no longer knows: the record's
 * mark rises each minute, and the bucket is told. A bucket that knows a later mark than the record outlived it.
 */
export class RestoreGuard {
  readonly #deps: RestoreDeps;
  #looked: Promise<boolean> | undefined;

  constructor(deps: RestoreDeps) {
    this.#deps = deps;
  }

  /** Lets a loop that deletes objects run only where that is safe; it mends nothing otherwise. */
  guarded(loop: ReconcileLoop): ReconcileLoop {
    return {
      ...loop,
      run: async (signal) => {
        await this.check();
        return (await recordState(this.#deps.store)).sweepsOff ? 0 : loop.run(signal);
      },
    };
  }

  /** Looks when a process begins to lead, and leaves a mark each minute. */
  loop(): ReconcileLoop {
    return {
      name: 'record-mark',
      everyMs,
      run: async () => {
        await this.check();
        const { store, objects } = this.#deps;
        const mark = await raiseMark(store);
        const { items } = await objects.list(prefix);
        await objects.put(keyOf(mark), Buffer.alloc(0));
        await objects.deleteMany(items.map(({ key }) => key));
        return 0;
      },
    };
  }

  /** Whether the record was found to be restored, and then made safe to run: once in a leadership, during which nobody puts another in its place. */
  check(): Promise<boolean> {
    return (this.#looked ??= this.#look().catch((error: unknown) => {
      this.#looked = undefined;
      throw error;
    }));
  }

  async #look(): Promise<boolean> {
    const { store, objects, logger } = this.#deps;
    const { items } = await objects.list(prefix);
    const known = Math.max(0, ...items.map(({ key }) => Number(key.slice(prefix.length))));
    const { mark } = await recordState(store);
    if (known <= mark) return false;
    logger.error({ mark, known }, 'the record is older than the bucket: it was restored; sweeps are off');
    await declareRestored(store, { actor: 'reconciler', mark: known });
    return true;
  }
}
