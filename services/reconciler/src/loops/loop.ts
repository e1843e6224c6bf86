import { type Clock, type Logger } from '@millrace/platform';

/**
 * One thing that the reconciler keeps true. Level-triggered: each run looks at the world and mends what
 * differs, so running twice or missing a run does no harm.
 */
export interface Loop {
  name: string;
  /** Milliseconds from the end of one run to the start of the next. */
  everyMs: number;
  /** Mends what it finds and returns how many things that were. */
  run(signal: AbortSignal): Promise<number>;
}

/** Told of every run, for metrics and health. */
export interface LoopObserver {
  succeeded(loop: string, corrections: number, seconds: number): void;
  failed(loop: string, error: unknown): void;
}

/** Runs loops side by side until `signal` aborts; one that fails is tried again in its turn, its siblings go on. */
export async function runLoops(
  loops: readonly Loop[],
  { clock, logger, observer }: { clock: Clock; logger: Logger; observer: LoopObserver },
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    loops.map(async (loop) => {
      while (!signal.aborted) {
        const startedAt = clock.now().getTime();
        try {
          const corrections = await loop.run(signal);
          observer.succeeded(loop.name, corrections, (clock.now().getTime() - startedAt) / 1000);
          if (corrections > 0) logger.info({ loop: loop.name, corrections }, 'reconciled');
        } catch (error) {
          observer.failed(loop.name, error);
          logger.error({ err: error, loop: loop.name }, 'reconcile loop failed');
        }
        await clock.sleep(loop.everyMs, signal).catch(() => undefined);
      }
    }),
  );
}
