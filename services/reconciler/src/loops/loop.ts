import { type Clock, type Logger, type Loop, type Metrics, repeatEvery } from '@millrace/platform';

/**
 * One thing that the reconciler keeps true. Level-triggered: each run looks at the world and mends what
 * differs, so running twice or missing a run does no harm. It is made of a `Reconciler` where what is seen lies apart from
 * what is changed, and of guarded transactions of the record where both are there (ADR 21).
 */
export interface ReconcileLoop {
  name: string;
  /** Milliseconds from the end of one run to the start of the next. */
  everyMs: number;
  /**
   * Milliseconds that it rests before its first run; none unless told. For what seldom runs and counts faults: its
   * counters have been scraped by then, without which no alert sees what the first run finds.
   */
  firstAfterMs?: number;
  /**
   * Mends what it finds and returns how many things that were. `failed` is called for each thing that could not be
   * mended while the run goes on with the others.
   */
  run(signal: AbortSignal, failed?: () => void): Promise<number>;
}

/**
 * How one kind of thing is kept true: look at one of them, decide without side effects, act. Safe to do twice, and for
 * one that is gone.
 */
export interface Reconciler<Key, Seen, Decision> {
  name: string;
  /** Those that may need something done. */
  list: () => Promise<readonly Key[]>;
  /** What a log calls it. */
  nameOf: (key: Key) => string;
  observe: (key: Key) => Promise<Seen>;
  /** Pure. Null when all is as it should be. */
  decide: (seen: Seen, now: Date) => Decision | null;
  /** @returns whether it has to be looked at again at once */
  act: (decision: Decision, seen: Seen) => Promise<boolean>;
}

/** One look at one of them. @returns whether it has to be looked at again at once, or null when nothing had to be done */
export async function reconcile<Key, Seen, Decision>(
  { observe, decide, act }: Reconciler<Key, Seen, Decision>,
  key: Key,
  now: () => Date,
): Promise<boolean | null> {
  const seen = await observe(key);
  const decision = decide(seen, now());
  return decision === null ? null : await act(decision, seen);
}

/**
 * A loop that looks at all that a reconciler lists, some at once. One that fails does not keep the others waiting: it is
 * logged and counted, and looked at again by the next run.
 */
export function reconcileAll<Key, Seen, Decision>(
  reconciler: Reconciler<Key, Seen, Decision>,
  options: { everyMs: number; atOnce?: number; clock: Clock; logger: Logger },
): ReconcileLoop {
  const { everyMs, atOnce = 1, clock, logger } = options;
  const { name } = reconciler;
  const run: ReconcileLoop['run'] = async (signal, failed) => {
    const due = [...(await reconciler.list())];
    let mended = 0;
    const work = async (): Promise<void> => {
      for (let key = due.shift(); key !== undefined && !signal.aborted; key = due.shift()) {
        try {
          if ((await reconcile(reconciler, key, () => clock.now())) !== null) mended += 1;
        } catch (error) {
          logger.error({ err: error, loop: name, key: reconciler.nameOf(key) }, 'not reconciled');
          failed?.();
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    return mended;
  };
  return { name, everyMs, run };
}

/**
 * Repeats a reconcile loop in its own time and measures it: last success, duration, corrections, and what could not be
 * mended. When it is due shows one that hangs, which is no failure that anybody sees.
 */
export function repeat(
  loop: ReconcileLoop,
  { clock, logger, metrics }: { clock: Clock; logger: Logger; metrics: Metrics },
): Loop {
  const corrections = metrics.counter('millrace_reconcile_corrections_total', 'Things mended.', ['loop']);
  const duration = metrics.histogram(
    'millrace_reconcile_duration_seconds',
    'How long one run took.',
    [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    ['loop'],
  );
  const failures = metrics.counter(
    'millrace_reconcile_failures_total',
    'Things that could not be mended, while the loop went on with the others.',
    ['loop'],
  );
  const unmended = metrics.gauge(
    'millrace_reconcile_unmended',
    'Things that the last run could not mend: of what seldom runs, a rate is over long before the next run.',
    ['loop'],
  );
  const due = metrics.gauge(
    'millrace_reconcile_due_timestamp_seconds',
    'When the loop is due; while it runs, when it began. Unix time.',
    ['loop'],
  );
  const isDue = (inMs: number): void => due.set((clock.now().getTime() + inMs) / 1000, { loop: loop.name });
  corrections.inc({ loop: loop.name }, 0);
  failures.inc({ loop: loop.name }, 0);
  const run = repeatEvery(loop.everyMs, clock, async (signal) => {
    const startedAt = clock.now().getTime();
    isDue(0);
    let left = 0;
    const mended = await loop.run(signal, () => {
      left += 1;
      failures.inc({ loop: loop.name });
    });
    isDue(loop.everyMs);
    unmended.set(left, { loop: loop.name });
    duration.observe((clock.now().getTime() - startedAt) / 1000, { loop: loop.name });
    corrections.inc({ loop: loop.name }, mended);
    if (mended > 0) logger.info({ loop: loop.name, corrections: mended }, 'reconciled');
  });
  let restMs = loop.firstAfterMs ?? 0;
  return {
    name: loop.name,
    run: async (signal, done) => {
      if (restMs > 0) {
        isDue(restMs);
        await clock.sleep(restMs, signal).catch(() => undefined);
        restMs = 0;
      }
      await run(signal, done);
    },
  };
}
