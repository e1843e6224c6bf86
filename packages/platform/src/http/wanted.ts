import { ProblemError } from '@millrace/contract';
import { type ServerResponse } from 'node:http';
import { ClientGoneError } from './json-body.ts';

/**
 * Does the work of an answer until it is done, the client is gone, or it took too long; the last two abort the signal.
 * @throws ProblemError `service_unavailable` when it took too long; ClientGoneError
 */
export async function whileWanted<T>(
  response: ServerResponse,
  deadlineMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const leaving = new AbortController();
  const { promise: unwanted, reject } = Promise.withResolvers<never>();
  const end = (reason: Error): void => {
    leaving.abort(reason);
    reject(reason);
  };
  const timer = setTimeout(() => {
    end(new ProblemError('service_unavailable', { retryAfter: 1, detail: 'This took too long.' }));
  }, deadlineMs);
  const onClose = (): void => {
    end(new ClientGoneError('the client left'));
  };
  response.once('close', onClose);
  try {
    return await Promise.race([work(leaving.signal), unwanted]);
  } finally {
    clearTimeout(timer);
    response.off('close', onClose);
  }
}
