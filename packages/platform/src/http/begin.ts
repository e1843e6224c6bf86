import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Logger } from '../logger.ts';
import { type Metrics } from '../metrics.ts';
import { lazyChild } from './lazy-child.ts';
import { observeRequests } from './observe.ts';
import { type RequestState } from './request-state.ts';

/** Makes the first step of every request: gives it an id, watches it, and sets the headers that every answer has. */
export function createBeginning(options: {
  newRequestId: () => string;
  logger: Logger;
  metrics: Metrics;
}): (request: IncomingMessage, response: ServerResponse) => RequestState {
  const observe = observeRequests(options.metrics, options.logger);
  return (request, response) => {
    const requestId = options.newRequestId();
    const state: RequestState = {
      request,
      response,
      requestId,
      log: lazyChild(options.logger, { requestId }),
      route: undefined,
      params: {},
      errorPages: false,
      path: '',
      query: {},
    };
    observe(state);
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    return state;
  };
}
