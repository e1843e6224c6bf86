import { type Bus } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { addHeartbeats, type Database } from '@millrace/store';
import { type ReconcileLoop } from './loop.ts';

/**
 * A heartbeat on each partition of the playback state, through the outbox: a CDN process that reads it knows
 * that it has seen every earlier commit (design, "CDN state").
 */
export function heartbeatLoop(deps: { store: Database; bus: Bus }): ReconcileLoop {
  const topic = topics.playbackState.name;
  return {
    name: 'heartbeats',
    everyMs: 5_000,
    run: async () => {
      await addHeartbeats(deps.store, topic, await deps.bus.partitions(topic));
      return 0;
    },
  };
}
