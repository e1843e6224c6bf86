import { type Bus } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type Metrics } from '@millrace/platform';
import {
  addHeartbeats,
  type Database,
  type EffectiveHold,
  forgetCdnProcesses,
  markSpreadingHolds,
  settleSpreadingHolds,
} from '@millrace/store';
import { type ReconcileLoop } from '../loops/loop.ts';

export interface SpreadDeps {
  store: Database;
  bus: Bus;
  metrics: Metrics;
  /** A hold is known to every process of the CDN. */
  onEffective: (hold: EffectiveHold) => void;
}

/**
 * Proves when holds hold on every process of the CDN, and measures how long that took. While one is on its way a
 * heartbeat goes out each second, so that the proof does not wait for the next ordinary one (ADR 18).
 */
export function spreadHoldsLoops({ store, bus, metrics, onEffective }: SpreadDeps): ReconcileLoop[] {
  const topic = topics.playbackState.name;
  const seconds = metrics.histogram(
    'millrace_hold_propagation_seconds',
    'From placing a hold to the proof that it holds on every CDN process: all confirmed it, or time passed.',
    [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300],
    ['proof'],
  );
  for (const proof of ['confirmed', 'waited']) seconds.zero({ proof });
  const spreading = metrics.gauge(
    'millrace_holds_spreading',
    'Holds that some CDN process has not confirmed.',
  );
  const oldest = metrics.gauge(
    'millrace_holds_spreading_oldest_seconds',
    'How long the oldest has been waited for.',
  );

  const spread = async (): Promise<number> => {
    const { count, oldestSeconds } = await markSpreadingHolds(store);
    spreading.set(count);
    oldest.set(oldestSeconds);
    if (count === 0) return 0;
    const settled = await settleSpreadingHolds(store);
    for (const hold of settled) {
      seconds.observe((hold.effectiveAt.getTime() - hold.placedAt.getTime()) / 1_000, {
        proof: hold.proof,
      });
      onEffective(hold);
    }
    if (settled.length < count) await addHeartbeats(store, topic, await bus.partitions(topic));
    return settled.length;
  };
  return [
    { name: 'spread-holds', everyMs: 1_000, run: spread },
    { name: 'forget-cdn-processes', everyMs: 600_000, run: () => forgetCdnProcesses(store) },
  ];
}
