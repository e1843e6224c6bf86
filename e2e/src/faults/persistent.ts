import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '@millrace/client';

const firstWaitMs = 200;
const longestWaitMs = 2_000;

/** Whether the same call may succeed later: no answer, an answer of our fault, or a wait that was asked for. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status >= 500 || error.status === 429;

/**
 * Calls a service that may be away, as a good client does (contract "Errors", the retry rule), until it answers.
 * @throws what no retry mends, or the signal's reason
 */
export async function persistently<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (!isPassing(error)) throw error;
      await pause(waitMs, undefined, { signal });
    }
  }
}
