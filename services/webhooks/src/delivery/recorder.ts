import { type Clock, type Logger } from '@millrace/platform';
import { type AttemptResult, DatabaseUnavailableError } from '@millrace/store';

export interface RecorderDeps {
  /** Writes results, all or none. */
  write(results: readonly AttemptResult[]): Promise<void>;
  /** Told of results once they are in the record, or can never be. */
  onSettled(results: readonly AttemptResult[]): void;
  clock: Clock;
  logger: Logger;
}

const largestBatch = 500;
/** Results wait in memory while the record is away, and their attempts are not repeated while the lease lives. */
const retryMs = 250;

/**
 * Brings results of attempts into the record: while one batch is being written the next one gathers, so that
 * batches grow with the load and a lone result does not wait.
 */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #closing = new AbortController();
  #waiting: AttemptResult[] = [];
  #writing: Promise<void> = Promise.resolve();
  #busy = false;
  #problem: string | undefined;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** `ok`, or why results cannot be recorded now. */
  get state(): string {
    return this.#problem ?? 'ok';
  }

  add(result: AttemptResult): void {
    this.#waiting.push(result);
    if (this.#busy) return;
    this.#busy = true;
    this.#writing = this.#writeAll();
  }

  /** Waits until everything is recorded, for `patienceMs` at most. */
  async close(patienceMs: number): Promise<void> {
    const late = new AbortController();
    const patience = this.#deps.clock.sleep(patienceMs, late.signal).then(
      () => {
        this.#closing.abort(new Error('the record is away'));
      },
      () => undefined,
    );
    await this.#writing;
    late.abort();
    await patience;
  }

  async #writeAll(): Promise<void> {
    // What ends in the same turn goes together.
    await new Promise((resolve) => setImmediate(resolve));
    let size = largestBatch;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, size);
      try {
        await this.#deps.write(batch);
        this.#settle(batch);
        this.#problem = undefined;
        size = largestBatch;
      } catch (error) {
        this.#problem = error instanceof Error ? error.message : 'failed';
        this.#deps.logger.error({ err: error, results: this.#waiting.length }, 'attempts not recorded');
        // What one row cannot do must not keep the others out: they are tried one by one, and it is given up.
        if (!(error instanceof DatabaseUnavailableError)) {
          if (size === 1) this.#settle(batch);
          size = 1;
        } else {
          await this.#deps.clock.sleep(retryMs, this.#closing.signal).catch(() => undefined);
          if (this.#closing.signal.aborted) break;
        }
      }
    }
    this.#busy = false;
  }

  #settle(batch: readonly AttemptResult[]): void {
    this.#waiting.splice(0, batch.length);
    this.#deps.onSettled(batch);
  }
}
