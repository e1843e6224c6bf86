import { type Bus } from '@millrace/bus';
import { type ObjectStore } from '@millrace/objects';
import { type Clock, type Logger, type Metrics, type TxtLookup } from '@millrace/platform';
import {
  abandonedCompletions,
  type Database,
  eraseVideos,
  expireRows,
  expireUploads,
  failOrphanedDeliveries,
  purgeWebhookLog,
  reapExpiredLeases,
  reconcileBanHolds,
  repairJobs,
  republishQueued,
  resolveCompleting,
} from '@millrace/store';
import { type SpreadDeps, spreadHoldsLoops } from '../holds/spread.ts';
import { holdCopiesLoop } from '../restore/hold-copies.ts';
import { RestoreGuard } from '../restore/marks.ts';
import { checkDomainsLoop } from './domains.ts';
import { heartbeatLoop } from './heartbeats.ts';
import { limitsLoops } from './limits.ts';
import { type ReconcileLoop } from './loop.ts';
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
  /** Chores of the adapters in use, such as pruning the bus log. */
  chores?: readonly ReconcileLoop[];
}

const second = 1_000;
const hour = 3_600_000;

/** Everything that the reconciler keeps true, and how often it looks. */
export function allLoops(deps: LoopDeps): ReconcileLoop[] {
  const { store, objects, clock } = deps;
  const now = (): Date => clock.now();
  const restore = new RestoreGuard(deps);
  return [
    restore.loop(),
    holdCopiesLoop(deps),
    heartbeatLoop(deps),
    restore.guarded({ name: 'expire-uploads', everyMs: 10 * second, run: () => expireUploads(store) }),
    { name: 'resolve-completing', everyMs: 2 * second, run: (signal) => resolveAbandoned(deps, signal) },
    { name: 'reap-encode-leases', everyMs: second, run: () => reapExpiredLeases(store) },
    { name: 'repair-encode-jobs', everyMs: 15 * second, run: () => repairJobs(store) },
    {
      name: 'republish-encode-tasks',
      everyMs: 15 * second,
      run: () => republishQueued(store, { olderThanMs: 60 * second, limit: 500 }),
    },
    restore.guarded(purgeLoop(deps)),
    restore.guarded(orphanUploadsLoop({ store, objects, now })),
    {
      name: 'fail-orphaned-deliveries',
      everyMs: 5 * second,
      run: (signal) => failOrphanedDeliveries(store, signal),
    },
    { name: 'purge-webhook-log', everyMs: 60 * second, run: (signal) => purgeWebhookLog(store, signal) },
    { name: 'expire-rows', everyMs: hour, run: () => expireRows(store) },
    { name: 'erase-accounts', everyMs: 5 * second, run: () => eraseVideos(store) },
    { name: 'ban-holds', everyMs: 5 * second, run: () => reconcileBanHolds(store) },
    checkDomainsLoop(deps),
    ...spreadHoldsLoops(deps),
    ...limitsLoops(deps),
    ...(deps.chores ?? []),
  ];
}

/** Completions whose caller died: the store says how they ended (design, rule 10). */
async function resolveAbandoned({ store, objects, logger }: LoopDeps, signal: AbortSignal): Promise<number> {
  let resolved = 0;
  for (const uploadId of await abandonedCompletions(store)) {
    if (signal.aborted) break;
    // One upload that cannot be resolved must not keep the others waiting.
    await resolveCompleting(store, objects, uploadId).then(
      () => resolved++,
      (error: unknown) => logger.error({ err: error, uploadId }, 'completion not resolved'),
    );
  }
  return resolved;
}
