import { assertEpoch, applyPlan, readPlanLimits } from '@millrace/store';
import { type Reconciler } from '../loops/loop.ts';
import { tellNews } from './events.ts';
import { type ObjectCache } from './object-cache.ts';
import { decidePlan, type PlanDecision, type SeenPlan } from './plan.ts';
import { type ObjectDeps } from './video-hold-reconciler.ts';

/** Makes the record's plans what the `Plan` objects say. */
export function planReconciler(
  deps: ObjectDeps,
  cache: ObjectCache,
): Reconciler<string, SeenPlan | null, PlanDecision> {
  const { api, store, lease } = deps;
  return {
    name: 'plans',
    list: () => Promise.resolve(cache.names()),
    nameOf: (name) => name,
    observe: async (name) => {
      const object = cache.get(name);
      return object === null ? null : { object, record: await readPlanLimits(store, name) };
    },
    decide: (seen, now) => (seen === null ? null : decidePlan(seen, now)),
    act: async (decision, seen) => {
      if (seen === null) return false;
      const { object } = seen;
      const { namespace, name } = object.metadata;
      if (decision.type === 'status') {
        cache.put(await api.writeStatus('Plan', object, decision.status));
        await tellNews(deps, { kind: 'Plan', object, news: decision.news });
        return false;
      }
      const { limits, owner } = decision;
      await store.transaction(async (tx) => {
        await applyPlan(tx, { planId: name, limits, owner, actor: `kubernetes:${namespace}/${name}` });
        await assertEpoch(tx, lease);
      });
      return true;
    },
  };
}
