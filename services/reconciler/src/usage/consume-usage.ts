import { type Bus, consume, type Subscription } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type Logger, type Metrics } from '@millrace/platform';
import { countWatchedTime, type Database, isDataException } from '@millrace/store';

const group = 'usage';

/**
 * Takes watched time into the record, on every replica: what is counted is decided under the account's lock, so
 * that repeated and reordered messages count once (contract MET-005).
 */
export function consumeUsage({
  bus,
  store,
  logger,
  metrics,
}: {
  bus: Bus;
  store: Database;
  logger: Logger;
  metrics: Metrics;
}): Promise<Subscription> {
  const counted = metrics.counter('millrace_watched_seconds_total', 'Watched time that was counted.');
  return consume(bus, {
    ...{ group, topic: topics.playbackUsage, logger, metrics, isHopeless: isDataException },
    handle: async ({ accountId, views }) => {
      const watched = await store.transaction((tx) => countWatchedTime(tx, { accountId, views }));
      if (watched === null) {
        logger.warn({ accountId }, 'watched time of an unknown account dropped');
        return;
      }
      counted.inc({}, watched.countedMs / 1_000);
      if (watched.limitReached) logger.info({ accountId }, 'account reached its watch limit');
    },
  });
}
