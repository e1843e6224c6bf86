import { isInternal, ProblemError, type RouteDefinition, routes } from '@millrace/contract';
import { createRequestIds } from '@millrace/domain';
import { ObjectStoreError } from '@millrace/objects';
import {
  createHttpApp,
  createHttpServer,
  createTxtLookup,
  type Guard,
  type HttpServer,
  type Service,
} from '@millrace/platform';
import { DatabaseUnavailableError } from '@millrace/store';
import { createCustomerGuard } from './auth/guard.ts';
import { createInternalGuard } from './auth/internal-guard.ts';
import { type ApiHandlers } from './calls.ts';
import { type ApiDeps } from './deps.ts';
import { docsAssets } from './docs/handlers.ts';
import { problemPage } from './docs/pages.ts';
import { apiHandlers } from './handlers.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';

export interface Api extends Service {
  /** Where customers' routes listen, `http://host:port`, once started. */
  readonly listening: string;
  /** Where admin and internal routes listen. */
  readonly internalListening: string;
}

/** The REST API: stateless; customers' routes on one port, the team's and the services' own on another. */
export function createApi(deps: ApiDeps): Api {
  const { config, logger } = deps;
  const rate = createRateLimit(deps);
  const newRequestId = createRequestIds();
  const handlers = apiHandlers({ ...deps, txt: createTxtLookup({ servers: config.DNS_SERVERS }) });
  const serve = (where: { host: string; port: number }, internal: boolean, guard: Guard): HttpServer =>
    createHttpServer({
      ...where,
      handler: createApp({ ...deps, handlers, guard, newRequestId }, internal ? null : rate),
      docsUrl: config.DOCS_URL,
      newRequestId,
      logger,
      maxConnections: config.API_MAX_CONNECTIONS,
    });
  const servers = {
    customer: serve({ host: config.API_HOST, port: config.API_PORT }, false, createCustomerGuard(deps)),
    internal: serve(
      { host: config.API_INTERNAL_HOST, port: config.API_INTERNAL_PORT },
      true,
      createInternalGuard(config),
    ),
  };
  let listening: { customer: string; internal: string } | null = null;
  let stopping = false;
  const address = (of: 'customer' | 'internal'): string => {
    if (listening === null) throw new Error('the API does not listen yet');
    return listening[of];
  };
  return {
    name: 'api',
    get listening() {
      return address('customer');
    },
    get internalListening() {
      return address('internal');
    },
    async start(signal) {
      const internal = await servers.internal.listen();
      const customer = await servers.customer.listen();
      signal.throwIfAborted();
      listening = {
        customer: `http://${config.API_HOST}:${customer.port}`,
        internal: `http://${config.API_INTERNAL_HOST}:${internal.port}`,
      };
    },
    async stop() {
      stopping = true;
      await Promise.all([servers.customer.close(), servers.internal.close()]);
      await rate.close();
    },
    health: () => {
      const ready = listening !== null && !stopping;
      return { healthy: true, ready, checks: { http: ready ? 'ok' : 'not listening' } };
    },
  };
}

/** @param rate null: for the internal port, which has routes of its own and no limits */
function createApp(
  deps: ApiDeps & { handlers: ApiHandlers; guard: Guard; newRequestId: () => string },
  rate: RateLimit | null,
) {
  const internal = rate === null;
  const { config, handlers, guard, newRequestId, logger, metrics, checkAnswers = false, site } = deps;
  const table = Object.entries(routes as Record<string, RouteDefinition>);
  return createHttpApp({
    routes: Object.fromEntries(table.filter(([, route]) => isInternal(route) === internal)),
    handlers,
    guard,
    translateError,
    cors: { dashboardOrigins: config.DASHBOARD_HOSTS.map((host) => `https://${host}`) },
    docsUrl: config.DOCS_URL,
    ...(internal ? {} : { assets: docsAssets, limitRate: rate.limit, errorPage: problemPage }),
    ...(internal || site === undefined ? {} : { site }),
    trustedCallers: internal,
    newRequestId,
    checkAnswers,
    logger,
    metrics,
  });
}

/** A port that cannot answer is worth a retry; everything else that is no problem is our fault. */
const translateError = (error: unknown): ProblemError | undefined =>
  error instanceof DatabaseUnavailableError ||
  (error instanceof ObjectStoreError && error.code === 'unavailable')
    ? new ProblemError('service_unavailable', { retryAfter: 1, cause: error })
    : undefined;
