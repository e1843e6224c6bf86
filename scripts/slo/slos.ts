/** A promise to customers, measured as a share of bad events; what alerts on its error budget are made from. */
export interface Slo {
  /** Value of the label `slo`. */
  name: string;
  /** Begins the names of its alerts. */
  alert: string;
  /** Page in `docs/runbooks`. */
  page: string;
  /** The share of events that must be good. */
  objective: number;
  /** What is promised, in one sentence. */
  promise: string;
  /** Bad events a second, over `window`; without a series while there were none. */
  bad: (window: string) => string;
  /** All events a second, over `window`. */
  total: (window: string) => string;
}

/**
 * Slower than a bound of a histogram, or all of it. Prometheus 3 writes whole bounds as `60.0`.
 */
const slower = (histogram: string, seconds: number, window: string, of: string[] = []): string => {
  const within = [...of, `le=~"${seconds}(\\\\.0)?"`].join(',');
  return `${count(histogram, window, of)} - sum(rate(${histogram}_bucket{${within}}[${window}]))`;
};
const count = (histogram: string, window: string, of: string[] = []): string =>
  `sum(rate(${histogram}_count${of.length === 0 ? '' : `{${of.join(',')}}`}[${window}]))`;

/**
 * Holds that a process of the CDN may have known only by time, since it vanished or is cut off, say nothing of how long
 * they took: the proof does, and always takes longer than what is promised.
 */
const confirmed = ['proof="confirmed"'];

/**
 * Customers' routes, but those that answer 503 by design while something is not set up. 499 is a caller who left; it
 * says nothing of us.
 */
const customers =
  'route=~"/v1/.*|/auth/.*",route!~"/v1/billing/(checkout|callbacks/.*)|/v1/demo/playback|/auth/{provider}/.*",status!="499"';
/** Videos that we could not make, whatever their source was. */
const lostToUs = (window: string): string =>
  `sum(rate(millrace_encode_troubles_total{kind!="source",outcome="failed"}[${window}]))`;

export const slos: readonly Slo[] = [
  {
    ...{ name: 'api', alert: 'MillraceApiErrors', page: 'api-errors', objective: 0.999 },
    promise: 'The API answers requests without a 5xx.',
    bad: (window) => `sum(rate(millrace_http_requests_total{${customers},status=~"5.."}[${window}]))`,
    total: (window) => `sum(rate(millrace_http_requests_total{${customers}}[${window}]))`,
  },
  {
    ...{ name: 'playback', alert: 'MillracePlaybackErrors', page: 'playback-errors', objective: 0.999 },
    promise: 'The CDN answers viewers without a 5xx.',
    bad: (window) => `sum(rate(millrace_cdn_requests_total{status=~"5.."}[${window}]))`,
    total: (window) => `sum(rate(millrace_cdn_requests_total{status!="499"}[${window}]))`,
  },
  {
    ...{ name: 'ready', alert: 'MillraceSlowToReady', page: 'slow-to-ready', objective: 0.95 },
    promise: 'A video is ready within five times its length (of one minute at least) after its upload.',
    bad: (window) =>
      `${slower('millrace_video_ready_relative', 5, window)} + (${lostToUs(window)} or vector(0))`,
    total: (window) =>
      `${count('millrace_video_ready_relative', window)} + (${lostToUs(window)} or vector(0))`,
  },
  {
    ...{ name: 'hold', alert: 'MillraceSlowHolds', page: 'slow-holds', objective: 0.999 },
    promise: 'A hold stops playback everywhere within 30 s.',
    bad: (window) => slower('millrace_hold_propagation_seconds', 30, window, confirmed),
    total: (window) => count('millrace_hold_propagation_seconds', window, confirmed),
  },
  {
    ...{ name: 'webhook', alert: 'MillraceSlowWebhooks', page: 'slow-webhooks', objective: 0.99 },
    promise: 'The first attempt of a webhook starts within 15 s.',
    bad: (window) => slower('millrace_webhook_first_attempt_seconds', 15, window),
    total: (window) => count('millrace_webhook_first_attempt_seconds', window),
  },
];
