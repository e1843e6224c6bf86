import { type RequestListener } from 'node:http';
import { type Metrics } from '@millrace/platform';
import { type Embed } from '../embed/embed.ts';
import { type Playback } from '../playback.ts';
import { Exchange, type ExchangeShared } from './exchange.ts';

/** In seconds: from a warm playlist to a segment at the end of a slow line. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * The entrance of the CDN: methods and metrics. GET and HEAD go to playback, or to the embed page with all that
 * is not below `/v/`; OPTIONS is a preflight for any path; no path has another method, which the contract's
 * conventions make a 404.
 */
export function createListener(
  { playback, embed }: { playback: Pick<Playback, 'answer' | 'failed'>; embed: Embed },
  shared: ExchangeShared,
  metrics: Metrics,
): RequestListener {
  const total = metrics.counter('millrace_cdn_requests_total', 'Requests answered, by route and outcome.', [
    'route',
    'status',
    'code',
  ]);
  const duration = metrics.histogram(
    'millrace_cdn_request_duration_seconds',
    'From the request to the end of its answer.',
    buckets,
    ['route'],
  );
  return (request, response) => {
    const startedMs = performance.now();
    const exchange = new Exchange(request, response, shared);
    response.once('close', () => {
      const { route, code } = exchange;
      // 499, as nginx counts them: the viewer left before the answer was through.
      const status = response.writableFinished ? exchange.status : 499;
      total.inc({ route, status, code });
      duration.observe((performance.now() - startedMs) / 1000, { route });
    });
    try {
      if (exchange.method === 'GET' || exchange.method === 'HEAD') {
        if (exchange.url.startsWith('/v/')) playback.answer(exchange);
        else embed.answer(exchange);
      } else if (exchange.method === 'OPTIONS') exchange.preflight();
      else exchange.refuse('not_found');
    } catch (error) {
      playback.failed(exchange, error);
    }
  };
}
