import { type Clock, type Logger } from '@millrace/platform';
import { attemptOf, type ClaimedTask, type Database, heartbeatTask } from '@millrace/store';
import { AttemptStopped } from './trouble.ts';

export interface HeldLease {
  /** Aborts with an `AttemptStopped` when the work must end. */
  signal: AbortSignal;
  /** Ends the work from this side. */
  stop(reason: AttemptStopped): void;
  /** Ends the heartbeats. */
  release(): Promise<void>;
}

/**
 * Keeps a task's lease while it is worked on. A heartbeat that cannot reach the record is tried again; when
 * none got through for as long as the lease holds, the task may be another's, and the work is stopped.
 */
export function holdLease(
  deps: { store: Database; clock: Clock; logger: Logger },
  task: ClaimedTask,
  leaseMs: number,
): HeldLease {
  const { store, clock, logger } = deps;
  const work = new AbortController();
  const released = new AbortController();

  const beat = async (): Promise<void> => {
    let heldUntil = clock.now().getTime() + leaseMs;
    while (!released.signal.aborted && !work.signal.aborted) {
      await clock.sleep(leaseMs / 3, released.signal);
      const sentAt = clock.now().getTime();
      try {
        const answer = await heartbeatTask(store, attemptOf(task), leaseMs);
        if (answer === 'ok') heldUntil = sentAt + leaseMs;
        else work.abort(new AttemptStopped(answer));
      } catch (error) {
        logger.warn({ err: error, taskId: task.id }, 'heartbeat failed');
        if (clock.now().getTime() >= heldUntil) work.abort(new AttemptStopped('lost'));
      }
    }
  };
  // The only rejection is the sleep's, when the lease is released.
  const beating = beat().catch(() => undefined);
  return {
    signal: work.signal,
    stop: (reason) => {
      work.abort(reason);
    },
    release: async () => {
      released.abort();
      await beating;
    },
  };
}
