import { type Bus } from '@millrace/bus';
import { type ObjectStore } from '@millrace/objects';
import { type Clock, type Logger, type Metrics, type TxtLookup } from '@millrace/platform';
import {
  abandonedCompletions,
  type Database,
  eraseVideos,
  expireRateWindows,
  expireRows,
  expireUploads,
  failOrphanedDeliveries,
  markPurgedVideos,
  purgeWebhookLog,
  reapExpiredLeases,
  reconcileBanHolds,
  repairJobs,
  republishQueued,
  resolveCompleting,
} from '@millrace/store';
import { type SpreadDeps, spreadHoldsLoops } from '../holds/spread.ts';
import { checkHoldCopiesLoop } from '../restore/check-hold-copies.ts';
import { holdCopiesLoop } from '../restore/hold-copies.ts';
import { RestoreGuard } from '../restore/marks.ts';
import { checkDomainsLoop } from './domains.ts';
import { fanOutLoop } from './fan-out.ts';
import { heartbeatLoop } from './heartbeats.ts';
import { limitsLoops } from './limits.ts';
import { reconcileAll, type ReconcileLoop, type Reconciler } from './loop.ts';
import { orphanUploadsLoop, purgeLoop } from './purge.ts';

export interface LoopDeps {
  store: Database;
  bus: Bus;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  txt: TxtLookup;
  onEffective: SpreadDeps['onEffective'];
  /** Chores beside these, such as pruning the bus log. */
  chores?: (metrics: Metrics) => readonly ReconcileLoop[];
}

const second = 1_000;
const hour = 3_600_000;

/** Everything that the reconciler keeps true, and how often it looks. */
export function allLoops(deps: LoopDeps): ReconcileLoop[] {
  const { store } = deps;
  const restore = new RestoreGuard(deps);
  return [
    restore.loop(),
    holdCopiesLoop(deps, restore),
    checkHoldCopiesLoop(deps, restore),
    heartbeatLoop(deps),
    restore.guarded({
      name: 'expire-uploads',
      everyMs: 10 * second,
      run: (signal) => expireUploads(store, { signal }),
    }),
    reconcileAll(abandonedUploads(deps), { ...deps, everyMs: 2 * second }),
    { name: 'reap-encode-leases', everyMs: second, run: (signal) => reapExpiredLeases(store, { signal }) },
    { name: 'repair-encode-jobs', everyMs: 15 * second, run: (signal) => repairJobs(store, { signal }) },
    {
      name: 'republish-encode-tasks',
      everyMs: 15 * second,
      run: () => republishQueued(store, { olderThanMs: 60 * second, limit: 500 }),
    },
    restore.guarded(purgeLoop(deps)),
    { name: 'mark-purged-videos', everyMs: 15 * second, run: () => markPurgedVideos(store) },
    restore.guarded(orphanUploadsLoop(deps)),
    fanOutLoop(deps),
    {
      name: 'fail-orphaned-deliveries',
      everyMs: 5 * second,
      run: (signal) => failOrphanedDeliveries(store, signal),
    },
    { name: 'purge-webhook-log', everyMs: 60 * second, run: (signal) => purgeWebhookLog(store, signal) },
    { name: 'expire-rows', everyMs: hour, run: (signal) => expireRows(store, { signal }) },
    {
      name: 'expire-rate-windows',
      everyMs: 60 * second,
      run: (signal) => expireRateWindows(store, { signal }),
    },
    restore.checked({
      name: 'erase-accounts',
      everyMs: 5 * second,
      run: (signal) => eraseVideos(store, signal),
    }),
    { name: 'ban-holds', everyMs: 5 * second, run: (signal) => reconcileBanHolds(store, { signal }) },
    checkDomainsLoop(deps),
    ...spreadHoldsLoops(deps),
    ...limitsLoops(deps),
    ...(deps.chores?.(deps.metrics) ?? []),
  ];
}

/** Completions whose caller died: the store says how they ended (design, rule 10). */
const abandonedUploads = ({ store, objects }: LoopDeps): Reconciler<string, string, string> => ({
  name: 'resolve-completing',
  list: () => abandonedCompletions(store),
  nameOf: (uploadId) => uploadId,
  // Looking and deciding are one with the act, under the upload's lease.
  observe: (uploadId) => Promise.resolve(uploadId),
  decide: (uploadId) => uploadId,
  act: async (uploadId) => {
    await resolveCompleting(store, objects, uploadId);
    return false;
  },
});
