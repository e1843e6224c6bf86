/** The states of a webhook delivery (contract "Webhook delivery"). */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** After tries 1 to 7; the eighth is the last (contract WHD-405). */
const waits = [10 * second, minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 12 * hour];
const jitter = 0.1;
const longestRetryAfter = hour;

/** How a try ended, and how many were recorded before it. */
export interface EndedTry {
  attempts: number;
  /** Whether a 2xx came within the time. */
  delivered: boolean;
  /** What the receiver asked for with `Retry-After` on 429 or 503, in milliseconds; null without it. */
  retryAfterMs: number | null;
}

/** `waitMs` is until the next try, in milliseconds. */
export type DeliveryDecision = { status: 'delivered' | 'failed' } | { status: 'pending'; waitMs: number };

/**
 * What follows from a try: a 2xx delivers; else it is tried again with growing waits, eight times in all.
 * `Retry-After` lengthens a wait, up to an hour, and never shortens one.
 *
 * @param random evenly from 0 to 1: spreads tries, so that what failed together does not come back together
 */
export function decideDelivery(
  { attempts, delivered, retryAfterMs }: EndedTry,
  random: number,
): DeliveryDecision {
  if (delivered) return { status: 'delivered' };
  const wait = waits[attempts];
  if (wait === undefined) return { status: 'failed' };
  const spread = wait * (1 + jitter * (2 * random - 1));
  return {
    status: 'pending',
    waitMs: Math.round(Math.max(spread, Math.min(retryAfterMs ?? 0, longestRetryAfter))),
  };
}

export type RedeliveryDecision =
  /** A new delivery of the same event. */
  | 'again'
  /** It waits: it becomes due now. */
  | 'now'
  /** `delivery_in_progress` */
  | 'refused';

/** What a customer's redelivery of a delivery means (contract WHE-216 to WHE-219). */
export function decideRedelivery(delivery: {
  status: DeliveryStatus;
  inFlight: boolean;
}): RedeliveryDecision {
  if (delivery.inFlight) return 'refused';
  return delivery.status === 'pending' ? 'now' : 'again';
}
