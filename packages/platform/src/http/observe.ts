import { type Logger } from '../logger.ts';
import { type Metrics } from '../metrics.ts';
import { type RequestState } from './request-state.ts';

/** In seconds: from a look-up by key to a verification that waits for DNS. */
const buckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Rate, errors and duration of requests by route pattern, and one log line each. Neither holds the address as it
 * was sent: it may carry a token.
 */
export function observeRequests(metrics: Metrics, logger: Logger): (state: RequestState) => void {
  const labelNames = ['route', 'method', 'status'];
  const total = metrics.counter('millrace_http_requests_total', 'Requests answered.', labelNames);
  const duration = metrics.histogram(
    'millrace_http_request_duration_seconds',
    'From the request line to the end of the answer.',
    buckets,
    labelNames,
  );
  return (state) => {
    const { request, response, requestId } = state;
    const startedAt = performance.now();
    response.once('close', () => {
      const seconds = (performance.now() - startedAt) / 1000;
      // 499, as nginx counts them: the client left before its answer.
      const status = response.writableFinished ? response.statusCode : 499;
      const labels = { route: state.route ?? 'unmatched', method: knownMethod(request.method ?? ''), status };
      total.inc(labels);
      duration.observe(seconds, labels);
      logger.info({ requestId, ...labels, ms: Math.round(seconds * 1000), params: state.params }, 'request');
    });
  };
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** A label must not take whatever a caller thinks of. */
const knownMethod = (method: string): string => (methods.has(method) ? method : 'other');
