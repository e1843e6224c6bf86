import { type Clock, type Loop, type Metrics, repeatEvery } from '@millrace/platform';
import { type Database, webhookBacklog } from '@millrace/store';

const everyMs = 10_000;

/** Shows what waits, of all workers together. */
export const backlogLoop = ({
  store,
  clock,
  metrics,
}: {
  store: Database;
  clock: Clock;
  metrics: Metrics;
}): Loop => {
  const oldest = metrics.gauge(
    'millrace_webhook_oldest_due_seconds',
    'For how long the oldest delivery has been due whose endpoint is not failing.',
  );
  const open = metrics.gauge('millrace_webhook_breakers_open', 'Endpoints that keep failing.');
  return {
    name: 'webhook-backlog',
    run: repeatEvery(everyMs, clock, async () => {
      const backlog = await webhookBacklog(store);
      oldest.set(backlog.oldestDueSeconds);
      open.set(backlog.openBreakers);
    }),
  };
};
