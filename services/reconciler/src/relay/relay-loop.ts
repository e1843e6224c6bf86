import { type Bell, type Loop, type Metrics } from '@millrace/platform';
import { outboxBacklog } from '@millrace/store';
import { relayOutbox, type RelayDeps } from './relay.ts';

/** How long the relay sleeps when nobody wakes it, in milliseconds. */
const sweepMs = 1_000;

/** Relays the outbox whenever the bell rings, and each second. One relay at a time: the caller leads. */
export function relayLoop(
  deps: Omit<RelayDeps, 'onPublished' | 'onParked'> & { metrics: Metrics; bell: Bell },
  relay: { lease: string; epoch: number },
): Loop {
  const { clock, metrics, store } = deps;
  const delay = metrics.histogram(
    'millrace_outbox_delay_seconds',
    'From writing a row to its acknowledgement by the bus.',
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  );
  const parked = metrics.counter('millrace_outbox_parked_total', 'Rows the bus refused for good.', ['topic']);
  const waiting = metrics.gauge('millrace_outbox_rows', 'Rows in the outbox.', ['state']);
  const oldest = metrics.gauge('millrace_outbox_oldest_seconds', 'Age of the oldest waiting row.');
  const relayDeps: RelayDeps = {
    ...deps,
    onPublished: (rows) => {
      const now = clock.now().getTime();
      for (const row of rows) delay.observe((now - row.createdAt.getTime()) / 1000);
    },
    onParked: (row) => parked.inc({ topic: row.topic }),
  };
  return {
    name: 'outbox-relay',
    run: async (signal, done) => {
      while (!signal.aborted) {
        await relayOutbox(relayDeps, relay, signal);
        const backlog = await outboxBacklog(store);
        waiting.set(backlog.waiting, { state: 'waiting' });
        waiting.set(backlog.parked, { state: 'parked' });
        oldest.set(backlog.oldestSeconds);
        done();
        await deps.bell.wait(sweepMs, signal);
      }
    },
  };
}
