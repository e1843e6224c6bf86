import { type KeyObject } from 'node:crypto';
import { signWebhook } from '@millrace/domain';
import { type Clock, type EgressAnswer, type EgressConnector, EgressError } from '@millrace/platform';
import { readRetryAfter } from './retry-after.ts';

/** One try to deliver an event to an endpoint. */
export interface Attempt {
  url: string;
  /** The key of the endpoint's signatures. */
  key: KeyObject;
  /** The event as JSON, the same bytes on every try. */
  body: Uint8Array;
  /** Whether the customer asked for it once more. */
  redelivery: boolean;
}

export interface Outcome {
  /** Whether a 2xx came within the time. */
  delivered: boolean;
  /** The answer's status; null when none came. */
  status: number | null;
  /** Why it is not delivered, short and fit for the customer; null when it is. */
  error: string | null;
  /** What `Retry-After` of a 429 or 503 asks for, in milliseconds from now, unbounded; null without one. */
  retryAfterMs: number | null;
}

export interface Sender {
  /**
   * Never rejects for what the receiver or the network does.
   * @throws EgressError `aborted` when the signal aborts: nothing is known then of this attempt
   */
  send(attempt: Attempt, signal?: AbortSignal): Promise<Outcome>;
}

export interface SenderDeps {
  egress: EgressConnector;
  clock: Clock;
  /** For one attempt as a whole, in milliseconds; 10 s unless told (contract "Delivery rules"). */
  timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;
/** What is read of an answer; only its status counts. */
const answerBytes = 4_096;
const userAgent = 'Millrace-Webhooks/1.0';

/** Signs and sends events, through the guarded way out. */
export function createSender(deps: SenderDeps): Sender {
  const { egress, clock, timeoutMs = defaultTimeoutMs } = deps;
  return {
    send: async ({ url, key, body, redelivery }, signal) => {
      const unixSeconds = Math.floor(clock.now().getTime() / 1_000);
      try {
        const answer = await egress.send({
          url,
          method: 'POST',
          headers: {
            'Content-Type': 'application/json',
            'User-Agent': userAgent,
            'Svc-Signature': signWebhook(key, body, unixSeconds),
            ...(redelivery ? { 'Svc-Redelivery': 'true' } : {}),
          },
          body,
          timeoutMs,
          maxResponseBytes: answerBytes,
          // Receivers know an event by its id (contract "Delivery rules").
          repeatable: true,
          ...(signal === undefined ? {} : { signal }),
        });
        return outcomeOf(answer, clock.now());
      } catch (error) {
        if (!(error instanceof EgressError) || error.code === 'aborted') throw error;
        return { delivered: false, status: error.status, error: error.message, retryAfterMs: null };
      }
    },
  };
}

function outcomeOf({ status, headers }: EgressAnswer, now: Date): Outcome {
  // 1xx are no answers.
  const delivered = status < 300;
  const mayWait = status === 429 || status === 503;
  return {
    delivered,
    status,
    error: delivered ? null : refusalText(status),
    retryAfterMs: mayWait ? readRetryAfter(headers['retry-after'], now) : null,
  };
}

const refusalText = (status: number): string =>
  status < 400 ? `answered ${status}; redirects are not followed` : `answered ${status}`;
