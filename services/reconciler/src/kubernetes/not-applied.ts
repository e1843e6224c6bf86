import { type Metrics } from '@millrace/platform';
import { type Kind, type KubernetesObject } from './api.ts';
import { findingOf } from './conditions.ts';

/** By what the objects of a kind say whether the record is as they ask. */
export interface Asks {
  /** The condition that is true when it is. */
  condition: string;
  /** Every reason for which it is not. */
  reasons: readonly string[];
  /** Keeps an object that was deleted until the record is as that asks. */
  finalizer?: string;
}

/** Nothing is said of it yet, or of an edit: it waits for its turn, or its turns fail. */
const pending = 'Pending';
/** Said by somebody else, or another version. */
const other = 'Other';

/** Why the record is not as an object asks; null when it is. */
function whyNotApplied(object: KubernetesObject, { condition, reasons, finalizer }: Asks): string | null {
  const { deletionTimestamp, finalizers } = object.metadata;
  if (deletionTimestamp !== undefined) {
    return finalizer !== undefined && finalizers.includes(finalizer) ? pending : null;
  }
  const finding = findingOf(object, condition);
  if (finding === null) return pending;
  // What was not applied may be an edit alone: the condition is true then.
  if (reasons.includes(finding.reason)) return finding.reason;
  return finding.status === 'True' ? null : other;
}

/**
 * Shows how many objects of a kind are not applied, by why.
 * @returns to be called whenever an object is known to be another, or to be gone (null)
 */
export function showNotApplied(
  metrics: Metrics,
  kind: Kind,
  asks: Asks,
): (name: string, object: KubernetesObject | null) => void {
  const gauge = metrics.gauge(
    'millrace_kubernetes_objects_not_applied',
    'Objects that the record is not as they ask, by why.',
    ['kind', 'reason'],
  );
  const whys = new Map<string, string>();
  const counts = new Map<string, number>();
  const add = (reason: string, by: number): void => {
    const count = (counts.get(reason) ?? 0) + by;
    counts.set(reason, count);
    gauge.set(count, { kind, reason });
  };
  for (const reason of [...asks.reasons, pending, other]) add(reason, 0);
  return (name, object) => {
    const [before, now] = [whys.get(name) ?? null, object && whyNotApplied(object, asks)];
    if (before === now) return;
    if (before !== null) add(before, -1);
    if (now === null) whys.delete(name);
    else {
      whys.set(name, now);
      add(now, 1);
    }
  };
}
