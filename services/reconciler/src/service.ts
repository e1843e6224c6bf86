import { randomUUID } from 'node:crypto';
import { type Bus, createMember } from '@millrace/bus';
import { type ObjectStore } from '@millrace/objects';
import {
  type Clock,
  createBell,
  createTermMetrics,
  createTxtLookup,
  type Logger,
  type LoopSupervisor,
  type Metrics,
  type Service,
  superviseLoops,
  type TermMetrics,
} from '@millrace/platform';
import { type Database, listen, type Listener } from '@millrace/store';
import { type ReconcilerConfig } from './config.ts';
import { consumeConfirmations } from './holds/consume-confirmations.ts';
import { type KubernetesApi } from './kubernetes/api.ts';
import { lead } from './leader.ts';
import { leadingLoops } from './loops/leading.ts';
import { type ReconcileLoop } from './loops/loop.ts';
import { consumeUsage } from './usage/consume-usage.ts';

export interface ReconcilerDeps {
  config: ReconcilerConfig;
  store: Database;
  /** For LISTEN: a direct connection, never through a pooler. */
  connectionString: string;
  bus: Bus;
  objects: ObjectStore;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Chores of the leader beside its own, such as pruning the bus log, with the metrics of its term. */
  chores?: (metrics: Metrics) => readonly ReconcileLoop[];
  /** With it the leader is an operator too; it is closed by who made it. */
  kubernetes?: { api: KubernetesApi; resyncMs: number } | undefined;
}

const leaseName = 'reconciler';

/**
 * Makes the world match the record: relays the outbox, beats the heart of the playback state, and runs every
 * reconcile loop — in one process at a time, the holder of the `reconciler` lease. Watched time and
 * what the CDN confirms are taken in by every process. What needs only the record is done while the bus is away too,
 * also by a process that starts meanwhile.
 */
export function createReconciler(deps: ReconcilerDeps): Service {
  const { store, clock, logger, metrics } = deps;
  const stopping = new AbortController();
  const txt = createTxtLookup({ servers: deps.config.DNS_SERVERS });
  const bell = createBell(clock);
  const leading = metrics.gauge('millrace_reconciler_leading', 'Whether this process leads.');
  let supervisor: LoopSupervisor | undefined;
  let listener: Listener | undefined;
  let election: Promise<void> | undefined;
  const members = [
    createMember('consume-usage', () => consumeUsage(deps)),
    createMember('consume-confirmations', () => consumeConfirmations(deps)),
  ];
  const consumers = superviseLoops(
    members.map(({ loop }) => loop),
    deps,
  );

  const loopsOf = (term: TermMetrics, epoch: number): LoopSupervisor => {
    const own = { ...deps, metrics: term.metrics };
    const lease = { lease: leaseName, epoch };
    return superviseLoops(leadingLoops({ ...own, bell, lease, txt }), own);
  };
  // Made once and never run, for their counters: those of faults begin at zero with the process and not with its term,
  // whose first runs may find some before anybody looks. A series that begins with them has no rate (ADR 20).
  const untilElected = createTermMetrics(metrics);
  loopsOf(untilElected, 0);
  untilElected.end();

  const work = async (epoch: number, signal: AbortSignal): Promise<void> => {
    const term = createTermMetrics(metrics);
    supervisor = loopsOf(term, epoch);
    leading.set(1);
    supervisor.start();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await supervisor.stop();
    term.end();
    leading.set(0);
    supervisor = undefined;
  };

  return {
    name: 'reconciler',
    start: async (signal) => {
      await store.query('select 1');
      listener = listen({ ...deps }, 'millrace_outbox', () => bell.ring());
      const { RECONCILER_LEASE_MS: ttlMs } = deps.config;
      election = lead(
        { store, clock, logger, lease: leaseName, holder: randomUUID(), ttlMs },
        work,
        stopping.signal,
      );
      consumers.start();
      await Promise.all(members.map((member) => member.attempted(signal)));
    },
    stop: async () => {
      stopping.abort();
      await consumers.stop();
      await election;
      await listener?.close();
    },
    // Never unhealthy for a red loop: a restart brings nothing back that is away, and would stop the loop's siblings.
    health: () => ({
      healthy: true,
      ready: members.every(({ joined }) => joined) && !stopping.signal.aborted,
      checks: { ...consumers.checks(), ...supervisor?.checks() },
    }),
  };
}
