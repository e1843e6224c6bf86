import { type Clock, type Logger, type Loop, type Metrics } from '@millrace/platform';
import { type EffectiveHold } from '@millrace/store';
import { reconcile, type Reconciler } from '../loops/loop.ts';
import { type KubernetesApi } from './api.ts';
import { type Asks, showNotApplied } from './not-applied.ts';
import { createObjectCache, type ObjectCache, type ObjectCacheOptions } from './object-cache.ts';
import { planReconciler } from './plan-reconciler.ts';
import { asksOfPlans } from './plan.ts';
import { type ObjectDeps, videoHoldReconciler } from './video-hold-reconciler.ts';
import { asksOfVideoHolds, releases, releasesUnseen } from './video-hold.ts';
import { createWorkQueue } from './work-queue.ts';

export interface OperatorDeps extends ObjectDeps {
  api: KubernetesApi;
  resyncMs: number;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
}

/** Follows the `VideoHold` and `Plan` objects of a namespace while this process leads. */
export interface Operator {
  loops: readonly Loop[];
  /** A hold is known to every process of the CDN: when it is that of an object, its status has to say so. */
  holdIsEffective(hold: Pick<EffectiveHold, 'source' | 'reference'>): void;
}

export function createOperator(deps: OperatorDeps): Operator {
  const holds = follow(
    deps,
    { kind: 'VideoHold', asks: asksOfVideoHolds, outlives: releases, outlivesUnseen: releasesUnseen },
    (cache) => videoHoldReconciler(deps, cache),
  );
  const plans = follow(
    deps,
    { kind: 'Plan', asks: asksOfPlans, outlives: () => false, outlivesUnseen: () => false },
    (cache) => planReconciler(deps, cache),
  );
  const prefix = `${deps.api.namespace}/`;
  return {
    loops: [...holds.loops, ...plans.loops],
    holdIsEffective: ({ source, reference }) => {
      if (source === 'kubernetes' && reference.startsWith(prefix)) holds.add(reference.slice(prefix.length));
    },
  };
}

/** Wires one kind: what its cache hears of goes through its queue to its reconciler. */
function follow<Seen, Decision>(
  deps: OperatorDeps,
  followed: Pick<ObjectCacheOptions, 'kind' | 'outlives' | 'outlivesUnseen'> & { asks: Asks },
  reconcilerOf: (cache: ObjectCache) => Reconciler<string, Seen, Decision>,
): { loops: Loop[]; add(name: string): void } {
  const cache = createObjectCache({
    ...{ ...deps, ...followed },
    onListed: async () => {
      for (const name of await reconciler.list()) queue.add(name);
    },
    onChanged: (name) => queue.add(name),
    onKnown: showNotApplied(deps.metrics, followed.kind, followed.asks),
  });
  const reconciler = reconcilerOf(cache);
  const queue = createWorkQueue({
    ...deps,
    name: reconciler.name,
    work: async (name) => ((await reconcile(reconciler, name, () => deps.clock.now())) === true ? 0 : null),
  });
  return { loops: [cache.loop, queue.loop], add: (name) => queue.add(name) };
}
