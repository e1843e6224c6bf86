import { type Clock, type Logger } from '@millrace/platform';
import { type Database, fanOutEvent, overdueFanOuts } from '@millrace/store';
import { reconcileAll, type ReconcileLoop } from './loop.ts';

/** For so long an event's own message may be under way; it takes well below a second while all is well. */
const overdueMs = 120_000;
/** The next run takes the rest. */
const eventsPerRun = 5_000;

/**
 * Turns events into deliveries whose message was lost or is late: the bus may lose a message, customers may not. A
 * message that comes after all finds that nothing is left to do.
 */
export const fanOutLoop = (deps: { store: Database; clock: Clock; logger: Logger }): ReconcileLoop =>
  reconcileAll<string, string, string>(
    {
      name: 'fan-out-events',
      list: () => overdueFanOuts(deps.store, { olderThanMs: overdueMs, limit: eventsPerRun }),
      nameOf: (eventId) => eventId,
      // Which endpoints are there still is read by the act, under their locks.
      observe: (eventId) => Promise.resolve(eventId),
      decide: (eventId) => eventId,
      act: async (eventId) => {
        await deps.store.transaction((tx) => fanOutEvent(tx, eventId));
        return false;
      },
    },
    { ...deps, everyMs: 2_000, atOnce: 4 },
  );
