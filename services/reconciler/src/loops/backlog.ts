import { type Clock, type Loop, type Metrics, repeatEvery } from '@millrace/platform';
import { type Database, encodeBacklog } from '@millrace/store';

const everyMs = 5_000;

/**
 * Shows what encoders have before them, for whatever scales them, and nothing while it cannot look: an old number would
 * be acted on.
 */
export const backlogLoop = ({
  store,
  clock,
  metrics,
}: {
  store: Database;
  clock: Clock;
  metrics: Metrics;
}): Loop => {
  const backlog = metrics.gauge(
    'millrace_encode_backlog_seconds',
    'Estimated CPU seconds of encode tasks that are under way or may be claimed, by class.',
    ['class'],
  );
  const show = repeatEvery(everyMs, clock, async () => {
    for (const { class: name, seconds } of await encodeBacklog(store)) backlog.set(seconds, { class: name });
  });
  return { name: 'encode-backlog', run: (...run) => show(...run).finally(() => backlog.clear()) };
};
