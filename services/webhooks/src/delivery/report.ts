import { type Logger, type Metrics } from '@millrace/platform';
import { type AttemptResult, type BreakerChange, type ClaimedDelivery } from '@millrace/store';

/** Tells logs and metrics of what happens to deliveries: one function for each business event. */
export interface Reporter {
  attempted(claim: ClaimedDelivery, result: AttemptResult): void;
  /** An endpoint's breaker opened or closed. */
  breakerChanged(change: BreakerChange): void;
  /** Attempts whose worker was lost before it recorded them. */
  interrupted(count: number): void;
}

const attemptBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const latencyBuckets = [0.05, 0.25, 1, 2.5, 5, 15, 60, 300, 1_800];

/** Never a secret and never the URL, whose path and query may hold one: the endpoint's id names it. */
export function createReporter(logger: Logger, metrics: Metrics): Reporter {
  const attempts = metrics.counter('millrace_webhook_attempts_total', 'Attempts by how they ended.', [
    'outcome',
  ]);
  for (const outcome of ['delivered', 'retried', 'failed', 'interrupted']) attempts.inc({ outcome }, 0);
  const duration = metrics.histogram(
    'millrace_webhook_attempt_seconds',
    'How long an attempt took.',
    attemptBuckets,
  );
  const latency = metrics.histogram(
    'millrace_webhook_first_attempt_seconds',
    'From when a delivery was due to the start of its first attempt.',
    latencyBuckets,
  );
  return {
    attempted: (claim, { status, lastStatus, lastError, waitMs, durationMs }) => {
      const outcome = status === 'pending' ? 'retried' : status;
      attempts.inc({ outcome });
      duration.observe(durationMs / 1_000);
      if (claim.attempts === 0) latency.observe(claim.overdueMs / 1_000);
      const { deliveryId, endpointId, eventId, eventType } = claim;
      const about = {
        deliveryId,
        endpointId,
        eventId,
        eventType,
        attempt: claim.attempts + 1,
        status: lastStatus,
      };
      if (outcome === 'delivered') logger.debug(about, 'webhook delivered');
      else if (outcome === 'retried')
        logger.info({ ...about, reason: lastError, waitMs }, 'webhook attempt failed');
      else logger.warn({ ...about, reason: lastError }, 'webhook delivery failed');
    },
    breakerChanged: ({ endpointId, failures, open }) => {
      if (open) logger.warn({ endpointId, failures }, 'webhook endpoint keeps failing: probed only');
      else logger.info({ endpointId }, 'webhook endpoint answers again');
    },
    interrupted: (count) => {
      attempts.inc({ outcome: 'interrupted' }, count);
      logger.warn({ count }, 'webhook attempts of a lost worker taken over');
    },
  };
}
