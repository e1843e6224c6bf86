import { type Clock } from '@millrace/platform';
import { assertEpoch, applyPlan, isDataException, readPlanLimits } from '@millrace/store';
import { type Reconciler } from '../loops/loop.ts';
import { decideStatus, type StatusStep } from './conditions.ts';
import { tellNews } from './events.ts';
import { type ObjectCache } from './object-cache.ts';
import { decidePlan, notHeldByRecord, type PlanDecision, type SeenPlan } from './plan.ts';
import { type ObjectDeps } from './video-hold-reconciler.ts';

/** Makes the record's plans what the `Plan` objects say. */
export function planReconciler(
  deps: ObjectDeps & { clock: Clock },
  cache: ObjectCache,
): Reconciler<string, SeenPlan | null, PlanDecision> {
  const { api, store, lease, clock } = deps;
  const tell = async (object: SeenPlan['object'], { status, news }: StatusStep): Promise<void> => {
    cache.put(await api.writeStatus('Plan', object, status));
    await tellNews(deps, { kind: 'Plan', object, news });
  };
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
        await tell(object, decision);
        return false;
      }
      const { limits, owner } = decision;
      try {
        await store.transaction(async (tx) => {
          await applyPlan(tx, { planId: name, limits, owner, actor: `kubernetes:${namespace}/${name}` });
          await assertEpoch(tx, lease);
        });
      } catch (error) {
        if (!isDataException(error)) throw error;
        const refused = decideStatus(object, { findings: [notHeldByRecord], now: clock.now() });
        if (refused !== null) await tell(object, refused);
        return false;
      }
      return true;
    },
  };
}
