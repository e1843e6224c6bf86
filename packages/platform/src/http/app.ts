import { parameterNames, pathParameters, ProblemError, type RouteDefinition } from '@millrace/contract';
import express, { type NextFunction, type Request, type Response } from 'express';
import { type IncomingMessage, type RequestListener } from 'node:http';
import { type HttpAppOptions } from './app-options.ts';
import { createBeginning } from './begin.ts';
import { corsFor, isPreflight } from './cors.ts';
import { createHotRoutes } from './hot-routes.ts';
import { type RequestState } from './request-state.ts';
import { parseTarget } from './request-url.ts';
import { fail, serve } from './serve.ts';
import { traceRequest } from './trace-request.ts';

/**
 * Mounts a route table on Express. Order of checks: the address's form (400), the rate (429), the route (404), then
 * the guard's (401, ban, project, scope), media type (415), body and parameters (400), and last the handler's own.
 * Everything that goes wrong is answered as a problem with the request's id; what is not a caller's mistake is
 * logged and reveals nothing. Routes that are `hot` are found ahead of Express's router, and served by the same steps.
 */
export function createHttpApp(options: HttpAppOptions): RequestListener {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  app.enable('case sensitive routing').enable('strict routing');
  const states = new WeakMap<IncomingMessage, RequestState>();
  const begin = createBeginning(options);
  const limit = async (request: IncomingMessage, path: string): Promise<void> => {
    if (!isPreflight(request)) await options.limitRate?.(request, path);
  };
  /** Waits only to refuse: what cannot be read counts all the same. */
  const readAddress = (state: RequestState, target: string): Promise<never> | undefined => {
    try {
      ({ path: state.path, query: state.query } = parseTarget(target));
      return undefined;
    } catch (error) {
      return limit(state.request, target).then(() => Promise.reject(error as Error));
    }
  };
  const stateOf = (request: IncomingMessage): RequestState => {
    const state = states.get(request);
    if (state === undefined) throw new Error('a request was routed before it was begun');
    return state;
  };

  app.use((request, response, next) => {
    const state = begin(request, response);
    states.set(request, state);
    const refusing = readAddress(state, request.originalUrl);
    if (refusing === undefined) next();
    else refusing.catch(next);
  });

  const hotRoutes: Mounted[] = [];
  for (const [path, entries] of byPath(options.routes)) {
    const fit = parametersFit(path);
    const route = app.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    const cors = corsFor(
      entries.map(([, definition]) => definition),
      options.cors,
    );
    route.all((request, response, next) => {
      const state = stateOf(request);
      state.route = path;
      state.params = request.params as Record<string, string>;
      if (!fit(state.params)) {
        next('route');
        return;
      }
      if (request.method === 'OPTIONS') {
        if (!cors.preflight(request, response)) next('route');
        return;
      }
      cors.apply(request, response);
      next();
    });
    for (const [operationId, definition] of entries) {
      const traced = { operationId, path, trusted: options.trustedCallers === true };
      const answer = (state: RequestState): Promise<void> =>
        traceRequest(traced, state, () => serve(operationId, definition, state, options));
      route[definition.method]((request) => answer(stateOf(request)));
      const method = definition.method.toUpperCase();
      if (definition.hot === true) hotRoutes.push({ method, path, fit, cors, answer });
    }
  }

  if (options.assets !== undefined) {
    const { path, folder } = options.assets;
    app.use(path, express.static(folder, { index: false, redirect: false, maxAge: '1d' }));
  }
  if (options.site !== undefined) app.use(options.site.path, options.site.handler);
  app.use(async (request) => {
    await limit(request, stateOf(request).path);
    throw new ProblemError('not_found');
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) {
      // Too late for a problem: Express ends the connection, so that the answer cannot look whole.
      next(error);
      return;
    }
    fail(error, stateOf(request), options);
  });

  const findHot = createHotRoutes(hotRoutes);
  const answerHot = async ({ path, cors, answer }: Mounted, state: RequestState): Promise<void> => {
    const { request, response } = state;
    try {
      const reading = readAddress(state, request.url ?? '');
      if (reading !== undefined) await reading;
      state.route = path;
      cors.apply(request, response);
      await answer(state);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else fail(error, state, options);
    }
  };
  return (request, response) => {
    const hot = findHot(request);
    if (hot === null || !hot.route.fit(hot.params)) {
      app(request, response);
      return;
    }
    const state = begin(request, response);
    state.params = hot.params;
    void answerHot(hot.route, state);
  };
}

/** A route in its place. */
interface Mounted {
  /** Upper case. */
  method: string;
  path: string;
  fit: ReturnType<typeof parametersFit>;
  cors: ReturnType<typeof corsFor>;
  answer: (state: RequestState) => Promise<void>;
}

function byPath(routes: Readonly<Record<string, RouteDefinition>>): Map<string, [string, RouteDefinition][]> {
  const paths = new Map<string, [string, RouteDefinition][]>();
  for (const [operationId, route] of Object.entries(routes)) {
    const entries = paths.get(route.path) ?? [];
    entries.push([operationId, route]);
    paths.set(route.path, entries);
  }
  return paths;
}

/** Whether values fit the patterns of a path's parameters. */
function parametersFit(path: string): (params: Readonly<Record<string, unknown>>) => boolean {
  const patterns = pathParameters as Readonly<
    Record<string, { safeParse(v: unknown): { success: boolean } }>
  >;
  const known = parameterNames(path).map((name) => ({ name, pattern: patterns[name] }));
  return (params) => known.every(({ name, pattern }) => pattern?.safeParse(params[name]).success === true);
}
