import { type Bell, type Clock, type Loop, repeatEvery } from '@millrace/platform';
import { type Database, takeOverClaims, type WebhookWorker } from '@millrace/store';
import { type Reporter } from './report.ts';

const everyMs = 1_000;

/**
 * Takes up what lost workers had in flight, at the start and then each second.
 * @param deps.holds the claims that this worker has in hand
 */
export const takeOverLoop = ({
  store,
  worker,
  holds,
  reporter,
  bell,
  clock,
}: {
  store: Database;
  worker: WebhookWorker;
  holds: () => string[];
  reporter: Reporter;
  bell: Bell;
  clock: Clock;
}): Loop => ({
  name: 'take-over',
  run: repeatEvery(everyMs, clock, async () => {
    const count = await takeOverClaims(store, worker, holds());
    if (count === 0) return;
    reporter.interrupted(count);
    bell.ring();
  }),
});
