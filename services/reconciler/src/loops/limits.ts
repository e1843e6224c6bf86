import { type Logger, type Metrics } from '@millrace/platform';
import {
  announcePlans,
  correctUsageDrift,
  type Database,
  purgeViews,
  reconcileWatchLimits,
  type UsageDrift,
} from '@millrace/store';
import { type ReconcileLoop } from './loop.ts';

/**
 * Keeps limits true: begins usage periods, tells the CDN what plan changes and rollovers mean, within a minute,
 * and corrects reservations and sums that drifted from the record, which is reported.
 */
export function limitsLoops({
  store,
  logger,
  metrics,
}: {
  store: Database;
  logger: Logger;
  metrics: Metrics;
}): ReconcileLoop[] {
  const drifted = metrics.counter(
    'millrace_usage_drift_total',
    'Reservations and sums of usage that were not what the record says, by kind. Each is a fault.',
    ['kind'],
  );
  for (const kind of ['stored', 'upload']) drifted.inc({ kind }, 0);
  const correct: ReconcileLoop['run'] = async (signal, failed) => {
    let corrected = 0;
    const onDrift = (drift: UsageDrift): void => {
      corrected += 1;
      drifted.inc({ kind: drift.kind });
      logger.error({ ...drift }, 'usage corrected');
    };
    try {
      await correctUsageDrift(store, { onDrift, signal });
    } catch (error) {
      if (!(error instanceof AggregateError)) throw error;
      // All the others were looked at: the next turn comes in its time.
      for (const err of error.errors as unknown[]) {
        logger.error({ err, loop: 'usage-drift' }, 'not reconciled');
        failed?.();
      }
    }
    return corrected;
  };
  return [
    { name: 'watch-limits', everyMs: 10_000, run: (signal) => reconcileWatchLimits(store, { signal }) },
    { name: 'announce-plans', everyMs: 2_000, run: (signal) => announcePlans(store, { signal }) },
    { name: 'purge-views', everyMs: 60_000, run: (signal) => purgeViews(store, { signal }) },
    { name: 'usage-drift', everyMs: 3_600_000, firstAfterMs: 300_000, run: correct },
  ];
}
