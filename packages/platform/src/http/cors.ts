import { type CorsPolicy, type RouteDefinition } from '@millrace/contract';
import { type IncomingMessage, type ServerResponse } from 'node:http';

export interface CorsOptions {
  /** Origins of the dashboard, as a browser sends them: `https://app.example.com`. */
  dashboardOrigins: readonly string[];
}

const requestHeaders = 'authorization, content-type, idempotency-key';
const exposedHeaders = 'Retry-After, X-Request-Id';
const preflightSeconds = '600';

/** Whether a browser asks what it may send (Fetch standard); such requests are never counted (contract RAT-003). */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/**
 * Answers for one path: which browsers may call and read it (contract "Browsers on other origins"). Headers go on every answer,
 * refusals too, so that a page sees the code.
 */
export function corsFor(
  routes: readonly RouteDefinition[],
  options: CorsOptions,
): {
  /** Sets the headers of an answer. */
  apply(request: IncomingMessage, response: ServerResponse): void;
  /** Answers a preflight; false when this path has none. */
  preflight(request: IncomingMessage, response: ServerResponse): boolean;
} {
  const policyOf = (method: string | undefined): CorsPolicy | undefined =>
    routes.find((route) => route.method.toUpperCase() === (method === 'HEAD' ? 'GET' : method))?.cors;

  const allow = (
    policy: CorsPolicy | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): boolean => {
    if (policy === undefined) return false;
    if (policy === 'any') {
      response.setHeader('Access-Control-Allow-Origin', '*');
      return true;
    }
    response.appendHeader('Vary', 'Origin');
    const { origin } = request.headers;
    if (origin === undefined) return false;
    if (options.dashboardOrigins.includes(origin)) {
      response.setHeader('Access-Control-Allow-Credentials', 'true');
    } else if (policy !== 'https' || !/^https:\/\/[^\s,/]+$/.test(origin)) return false;
    response.setHeader('Access-Control-Allow-Origin', origin);
    return true;
  };
  return {
    apply(request, response) {
      if (allow(policyOf(request.method), request, response)) {
        response.setHeader('Access-Control-Expose-Headers', exposedHeaders);
      }
    },
    preflight(request, response) {
      const wanted = request.headers['access-control-request-method'];
      const policy = policyOf(wanted) ?? routes.find((route) => route.cors !== undefined)?.cors;
      if (wanted === undefined || policy === undefined) return false;
      if (allow(policyOf(wanted), request, response)) {
        response.setHeader('Access-Control-Allow-Methods', wanted);
        response.setHeader('Access-Control-Allow-Headers', requestHeaders);
        response.setHeader('Access-Control-Max-Age', preflightSeconds);
      }
      response.writeHead(204).end();
      return true;
    },
  };
}
