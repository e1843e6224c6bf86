import { decideDelivery } from '@millrace/domain';
import { type AttemptResult, type ClaimedDelivery } from '@millrace/store';
import { type Outcome } from '../sender/sender.ts';

/** What follows from how an attempt ended. */
export function settle(claim: ClaimedDelivery, outcome: Outcome, durationMs: number): AttemptResult {
  const { attempts } = claim;
  const { delivered, retryAfterMs, status: lastStatus, error: lastError } = outcome;
  const decision = decideDelivery({ attempts, delivered, retryAfterMs }, Math.random());
  const waitMs = decision.status === 'pending' ? decision.waitMs : null;
  return { claim, status: decision.status, waitMs, lastStatus, lastError, durationMs };
}
