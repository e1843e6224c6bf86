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
  #looked: Promise<void> | undefined;

  constructor(deps: RestoreDeps) {
    this.#deps = deps;
  }

  /** Lets a loop that deletes objects run only where that is safe; it mends nothing otherwise. */
  guarded(loop: ReconcileLoop): ReconcileLoop {
    return this.checked({
      ...loop,
      run: async (signal, failed) =>
        (await recordState(this.#deps.store)).sweepsOff ? 0 : loop.run(signal, failed),
    });
  }

  /** Lets a loop run once the record is known to be safe to run. */
  checked(loop: ReconcileLoop): ReconcileLoop {
    return {
      ...loop,
      run: async (signal, failed) => {
        await this.check();
        return loop.run(signal, failed);
      },
    };
  }

  /**
   * Looks when a process begins to lead and each minute, since it may outlive a record that is replaced under it; then
   * leaves a mark.
   */
  loop(): ReconcileLoop {
    return {
      name: 'record-mark',
      everyMs,
      run: async () => {
        await this.check();
        await this.#look();
        const { store, objects } = this.#deps;
        const mark = await raiseMark(store);
        const { items } = await objects.list(prefix);
        await objects.put(keyOf(mark), Buffer.alloc(0));
        // None above it: those are a later leader's, when this one was paused meanwhile.
        await objects.deleteMany(items.map(({ key }) => key).filter((key) => key < keyOf(mark)));
        return 0;
      },
    };
  }

  /** Comes back when this leadership has looked: a record that was restored is safe to run by then. */
  check(): Promise<void> {
    return (this.#looked ??= this.#look().catch((error: unknown) => {
      this.#looked = undefined;
      throw error;
    }));
  }

  async #look(): Promise<void> {
    const { store, objects, logger } = this.#deps;
    const { items } = await objects.list(prefix);
    const known = Math.max(0, ...items.map(({ key }) => Number(key.slice(prefix.length))));
    const { mark } = await recordState(store);
    if (known <= mark) return;
    logger.error({ mark, known }, 'the record is older than the bucket: it was restored; sweeps are off');
    await declareRestored(store, { actor: 'reconciler', mark: known });
  }
}
