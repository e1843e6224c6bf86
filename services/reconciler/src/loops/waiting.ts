import { type Clock, type Loop, type Metrics, repeatEvery } from '@millrace/platform';
import { countEncodePauses, type Database, encodeQueueAges, outboxBacklog } from '@millrace/store';

const everyMs = 5_000;

/**
 * Shows what waits in the record. Apart from those who do the work: what waits is most worth knowing while they
 * cannot. While it cannot look it shows nothing, since an old number would be believed.
 */
export const waitingLoop = ({
  store,
  clock,
  metrics,
}: {
  store: Database;
  clock: Clock;
  metrics: Metrics;
}): Loop => {
  const rows = metrics.gauge('millrace_outbox_rows', 'Rows in the outbox.', ['state']);
  const oldest = metrics.gauge('millrace_outbox_oldest_seconds', 'Age of the oldest waiting row.');
  const queued = metrics.gauge(
    'millrace_encode_oldest_queued_seconds',
    'For how long a free encoder could have claimed the oldest encode task, by class.',
    ['class'],
  );
  const pauses = metrics.gauge('millrace_encode_pauses', 'Pauses of encoding that the team made.', ['scope']);
  const show = repeatEvery(everyMs, clock, async () => {
    const outbox = await outboxBacklog(store);
    rows.set(outbox.waiting, { state: 'waiting' });
    rows.set(outbox.parked, { state: 'parked' });
    oldest.set(outbox.oldestSeconds);
    for (const { class: name, oldestSeconds } of await encodeQueueAges(store))
      queued.set(oldestSeconds, { class: name });
    for (const { scope, count } of await countEncodePauses(store)) pauses.set(count, { scope });
  });
  const forget = (): void => {
    for (const gauge of [rows, oldest, queued, pauses]) gauge.clear();
  };
  return { name: 'waiting', run: (...run) => show(...run).finally(forget) };
};
