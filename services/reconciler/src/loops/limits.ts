import { type Logger, type Metrics } from '@millrace/platform';
import {
  announcePlans,
  correctUsageDrift,
  type Database,
  purgeViews,
  reconcileWatchLimits,
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
  return [
    { name: 'watch-limits', everyMs: 10_000, run: (signal) => reconcileWatchLimits(store, { signal }) },
    { name: 'announce-plans', everyMs: 2_000, run: (signal) => announcePlans(store, { signal }) },
    { name: 'purge-views', everyMs: 60_000, run: (signal) => purgeViews(store, { signal }) },
    {
      name: 'usage-drift',
      everyMs: 3_600_000,
      run: async () => {
        const drifts = await correctUsageDrift(store);
        for (const drift of drifts) {
          drifted.inc({ kind: drift.kind });
          logger.error({ ...drift }, 'usage corrected');
        }
        return drifts.length;
      },
    },
  ];
}
