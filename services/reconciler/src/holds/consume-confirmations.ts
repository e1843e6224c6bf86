import { type Bus, consume, type Subscription } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { type Logger, type Metrics } from '@millrace/platform';
import { confirmPlaybackState, type Database, isDataException } from '@millrace/store';

/** Takes what CDN processes confirm into the record, on every replica. */
export function consumeConfirmations(deps: {
  bus: Bus;
  store: Database;
  logger: Logger;
  metrics: Metrics;
}): Promise<Subscription> {
  return consume(deps.bus, {
    ...{ group: 'confirmations', topic: topics.playbackConfirmations },
    ...{ logger: deps.logger, metrics: deps.metrics, isHopeless: isDataException },
    // The next one says all that it said: nobody has to look at it later.
    onDead: () => undefined,
    handle: ({ bootId, confirmedUpTo, ended }) =>
      confirmPlaybackState(deps.store, { bootId, ended, confirmedUpTo: new Date(confirmedUpTo) }),
  });
}
