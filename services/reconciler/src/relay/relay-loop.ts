import { topics } from '@millrace/contract';
import { type Bell, type Loop, type Metrics } from '@millrace/platform';
import { relayOutbox, type RelayDeps } from './relay.ts';

/** How long the relay sleeps when nobody wakes it, in milliseconds. */
const sweepMs = 1_000;

/** Relays the outbox whenever the bell rings, and each second. One relay at a time: the caller leads. */
export function relayLoop(
  deps: Omit<RelayDeps, 'onPublished' | 'onParked'> & { metrics: Metrics; bell: Bell },
  relay: { lease: string; epoch: number },
): Loop {
  const { clock, metrics } = deps;
  const delay = metrics.histogram(
    'millrace_outbox_delay_seconds',
    'From writing a row to its acknowledgement by the bus.',
    [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  );
  const parked = metrics.counter('millrace_outbox_parked_total', 'Rows the bus refused for good.', ['topic']);
  for (const { name } of Object.values(topics)) parked.inc({ topic: name }, 0);
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
        done();
        await deps.bell.wait(sweepMs, signal);
      }
    },
  };
}
