import {
  parameterNames,
  pathParameters,
  type Problem,
  ProblemError,
  type RouteDefinition,
} from '@millrace/contract';
import express, { type NextFunction, type Request, type Response } from 'express';
import { type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { type Logger } from '../logger.ts';
import { type Metrics } from '../metrics.ts';
import { problemFor, sendJson, sendProblem, sendText } from './answer.ts';
import { type Call, type ErrorTranslator, type Guard } from './call.ts';
import { corsFor, type CorsOptions, isPreflight } from './cors.ts';
import { discardRest } from './discard.ts';
import { checkMediaType, ClientGoneError, hasBody, readBytes, readJson } from './json-body.ts';
import { observeRequests } from './observe.ts';
import { traceRequest } from './trace-request.ts';
import { parseTarget } from './request-url.ts';
import { validate } from './validate.ts';

export interface HttpAppOptions {
  routes: Readonly<Record<string, RouteDefinition>>;
  /** One for each operation id. Their types are checked where they are made (`Handler`). */
  handlers: Readonly<Record<string, (call: never) => Promise<unknown>>>;
  guard: Guard;
  translateError: ErrorTranslator;
  cors: CorsOptions;
  /** Base of problem types, without a final slash. */
  docsUrl: string;
  newRequestId: () => string;
  /** Called first of all checks, and not for preflights. @throws ProblemError `rate_limited` */
  limitRate?: (request: IncomingMessage, path: string) => Promise<void>;
  /** A failure as a page for people, on routes with `errorPages`. */
  errorPage?: (problem: Problem) => string;
  /** Compare every answer with its schema, and fail the request when it differs: in tests. */
  checkAnswers?: boolean;
  /** Files that are served as they are, below a path. */
  assets?: { path: string; folder: string };
  /** Pages beside the routes. */
  site?: Site;
  /** Callers are services of ours: their traces go on here. Else each request begins one. */
  trustedCallers?: boolean;
  /** How long a handler may take, in milliseconds, before its caller is told to come back; 60 s unless told. */
  deadlineMs?: number;
  logger: Logger;
  metrics: Metrics;
}

const defaultDeadlineMs = 60_000;

/** Answers what lies below a path that no route has; `next` for what it does not know. */
export interface Site {
  path: string;
  /** The address is seen without the path before it. */
  handler: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;
}

/** What the first step of a request finds out and the later ones need. */
interface RequestState {
  requestId: string;
  log: Logger;
  path: string;
  query: Record<string, string | string[]>;
}

/**
 * Mounts a route table on Express. Order of checks: the address's form (400), the rate (429), the route (404), then
 * the guard's (401, ban, project, scope), media type (415), body and parameters (400), and last the handler's own.
 * Everything that goes wrong is answered as a problem with the request's id; what is not a caller's mistake is
 * logged and reveals nothing.
 */
export function createHttpApp(options: HttpAppOptions): RequestListener {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false);
  app.enable('case sensitive routing').enable('strict routing');
  const states = new WeakMap<Request, RequestState>();
  const observe = observeRequests(options.metrics);
  const limit = async (request: Request, path: string): Promise<void> => {
    if (!isPreflight(request)) await options.limitRate?.(request, path);
  };

  app.use((request, response, next) => {
    const requestId = options.newRequestId();
    const log = options.logger.child({ requestId });
    observe(request, response, log);
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    try {
      states.set(request, { requestId, log, ...parseTarget(request.originalUrl) });
    } catch (error) {
      // What cannot be read counts all the same.
      limit(request, request.originalUrl).then(() => next(error), next);
      return;
    }
    next();
  });

  for (const [path, entries] of byPath(options.routes)) {
    const route = app.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    const cors = corsFor(
      entries.map(([, definition]) => definition),
      options.cors,
    );
    route.all((request, response, next) => {
      response.locals['route'] = path;
      if (!parametersFit(path, request.params)) {
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
      route[definition.method]((request, response) =>
        traceRequest(traced, { request, response }, () =>
          serve(operationId, definition, request, response, required(states.get(request)), options),
        ),
      );
    }
  }

  if (options.assets !== undefined) {
    const { path, folder } = options.assets;
    app.use(path, express.static(folder, { index: false, redirect: false, maxAge: '1d' }));
  }
  if (options.site !== undefined) app.use(options.site.path, options.site.handler);
  app.use(async (request) => {
    await limit(request, required(states.get(request)).path);
    throw new ProblemError('not_found');
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) {
      // Too late for a problem: Express ends the connection, so that the answer cannot look whole.
      next(error);
      return;
    }
    fail(error, request, response, states.get(request)?.log ?? options.logger, options);
  });
  return app;
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

const parametersFit = (path: string, params: Request['params']): boolean =>
  parameterNames(path).every((name) => {
    const schema = (
      pathParameters as Readonly<Record<string, { safeParse(v: unknown): { success: boolean } }>>
    )[name];
    return schema?.safeParse(params[name]).success === true;
  });

async function serve(
  operationId: string,
  route: RouteDefinition,
  request: Request,
  response: Response,
  state: RequestState,
  options: HttpAppOptions,
): Promise<void> {
  response.locals['errorPages'] = route.errorPages === true;
  const handler = options.handlers[operationId] as (call: Call<RouteDefinition>) => Promise<unknown>;
  const params = request.params as Record<string, string>;
  const { method, headers } = request;
  await options.limitRate?.(request, state.path);
  const admission = await options.guard(route, { method, headers, params, log: state.log });
  if (hasBody(request) && route.rawBody === undefined)
    checkMediaType(request, admission.jsonOnly, route.body !== undefined);
  const json = route.body === undefined ? undefined : await readJson(request, response);
  const raw =
    route.rawBody === undefined
      ? Buffer.alloc(0)
      : await readBytes(request, response, route.rawBody.maxBytes);
  const [query, body] = validate([
    { schema: route.query, value: state.query, root: 'query' },
    { schema: route.body, value: json, root: 'body' },
  ]);
  const leaving = new AbortController();
  const timer = setTimeout(() => {
    leaving.abort(new ProblemError('service_unavailable', { retryAfter: 1, detail: 'This took too long.' }));
  }, options.deadlineMs ?? defaultDeadlineMs);
  response.once('close', () => {
    clearTimeout(timer);
    leaving.abort(new ClientGoneError('the client left'));
  });
  const answer = await orAborted(
    leaving.signal,
    handler({
      ...admission.context,
      ...{ params, query, body, json, raw, headers, path: state.path },
      method: route.method.toUpperCase(),
      requestId: state.requestId,
      log: state.log,
      signal: leaving.signal,
      setHeader: (name: string, value: string | readonly string[]) => response.setHeader(name, value),
    } as Call<RouteDefinition>),
  );
  if (options.checkAnswers === true) checkAnswer(operationId, route, answer);
  if (!request.complete) discardRest(request, response);
  const { status, mediaType } = route.response;
  if (status === 303 && !response.hasHeader('Location')) throw new Error(`${operationId} leads nowhere`);
  if (mediaType === undefined) sendJson(response, status, answer);
  else sendText(response, status, mediaType, answer as string);
}

function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort);
    });
  });
}

/** What is sent must be what the schema says, no more and no less. */
function checkAnswer(operationId: string, route: RouteDefinition, answer: unknown): void {
  const schema = route.response.body;
  if (schema === undefined) {
    if (answer !== undefined) throw new Error(`${operationId} answered a body that its route does not have`);
    return;
  }
  const sent = JSON.parse(JSON.stringify(answer)) as unknown;
  if (!isDeepStrictEqual(schema.parse(sent), sent)) {
    throw new Error(`${operationId} answered fields that its schema does not have`);
  }
}

function fail(
  error: unknown,
  request: Request,
  response: Response,
  log: Logger,
  options: HttpAppOptions,
): void {
  if (error instanceof ClientGoneError || response.destroyed) {
    response.destroy();
    return;
  }
  let problem = error instanceof ProblemError ? error : options.translateError(error);
  if (problem === undefined || problem.status >= 500) {
    log.error({ err: error, route: response.locals['route'] as unknown }, 'request failed');
  }
  problem ??= new ProblemError('internal_error');
  if (!request.complete) discardRest(request, response);
  const { errorPage } = options;
  if (errorPage !== undefined && isForPeople(problem, request, response)) {
    // Nothing of another site gets into a page of ours, whatever slips through its escaping.
    response.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
    sendText(response, problem.status, 'text/html', errorPage(problemFor(problem, options.docsUrl)));
  } else sendProblem(response, problem, options.docsUrl);
}

/** Whether a person looks at the answer (Fetch metadata; absent from what is no browser). */
const isForPeople = (problem: ProblemError, { headers }: Request, { locals }: Response): boolean =>
  locals['errorPages'] === true && (problem.page || headers['sec-fetch-mode'] === 'navigate');

function required(state: RequestState | undefined): RequestState {
  if (state === undefined) throw new Error('a request was routed before it was begun');
  return state;
}
