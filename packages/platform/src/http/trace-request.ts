import { inServerSpan, markFailed } from '../trace.ts';
import { type RequestState } from './request-state.ts';

/** What a request's span is named by and what else is decided about it before it begins. */
export interface TracedRoute {
  operationId: string;
  path: string;
  /** Whether callers are services of ours: only then their trace goes on here. */
  trusted: boolean;
}

/** Answers a request inside a span that ends with its answer. */
export function traceRequest(
  { operationId, path, trusted }: TracedRoute,
  { request, response }: Pick<RequestState, 'request' | 'response'>,
  work: () => Promise<void>,
): Promise<void> {
  const attributes = {
    'http.request.method': request.method ?? '',
    'http.route': path,
    'millrace.operation': operationId,
  };
  const { traceparent, tracestate } = request.headers;
  const from = {
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(typeof tracestate === 'string' ? { tracestate } : {}),
  };
  const name = `${request.method ?? ''} ${path}`;
  return inServerSpan(name, { attributes, from: trusted ? from : undefined }, (span) => {
    response.once('close', () => {
      const status = response.writableFinished ? response.statusCode : 499;
      span.setAttribute('http.response.status_code', status);
      if (status >= 500) markFailed(span, String(status));
      span.end();
    });
    return work();
  });
}
