import { type Clock, type Metrics } from '@millrace/platform';
import { sleepUnlessAborted } from '../delivery/wakeup.ts';
import { type KafkaCluster, lagOf } from './cluster.ts';
import { type KafkaSubscription } from './subscription.ts';
import { type KafkaTimes } from './times.ts';

/**
 * Exports, now and then, how many messages wait for this process: of each topic, those in the partitions that its
 * members own. The sum over all processes is a group's lag. (Groups are no label: each CDN process has its own.)
 */
export function exportLag(
  metrics: Metrics,
  {
    subscriptions,
    cluster,
    clock,
    times,
  }: {
    subscriptions: Iterable<KafkaSubscription>;
    cluster: KafkaCluster;
    clock: Clock;
    times: KafkaTimes;
  },
): { stop(): Promise<void> } {
  const gauge = metrics.gauge(
    'millrace_bus_lag_messages',
    'Messages in the partitions that this process owns, which its groups have not committed.',
    ['topic'],
  );
  const topics = new Set<string>();
  const look = async (): Promise<void> => {
    const lags = new Map([...topics].map((topic) => [topic, 0]));
    for (const subscription of subscriptions) {
      const { groupId, topic } = subscription;
      topics.add(topic);
      const positions = await cluster.positions(groupId, topic);
      const waiting = subscription.assigned().flatMap((partition) => positions.get(partition) ?? []);
      lags.set(
        topic,
        waiting.reduce((sum, position) => sum + lagOf(position), lags.get(topic) ?? 0),
      );
    }
    for (const [topic, lag] of lags) gauge.set(lag, { topic });
  };
  const asked = new AbortController();
  const run = async (): Promise<void> => {
    // While the cluster does not answer, the gauge keeps what was known last.
    while (await sleepUnlessAborted(clock, times.lagMs, asked.signal)) await look().catch(() => undefined);
  };
  const running = run();
  return {
    stop: () => {
      asked.abort();
      return running;
    },
  };
}
