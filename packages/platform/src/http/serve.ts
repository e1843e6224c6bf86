import { ProblemError, type RouteDefinition } from '@millrace/contract';
import { isDeepStrictEqual } from 'node:util';
import { problemFor, sendJson, sendProblem, sendText } from './answer.ts';
import { type HttpAppOptions } from './app-options.ts';
import { type Call } from './call.ts';
import { discardRest } from './discard.ts';
import { checkMediaType, ClientGoneError, hasBody, readBytes, readJson } from './json-body.ts';
import { type RequestState } from './request-state.ts';
import { validate } from './validate.ts';
import { whileWanted } from './wanted.ts';

const defaultDeadlineMs = 60_000;
const noBytes = Buffer.alloc(0);

/**
 * Answers a request of a route: the rate (429), the guard's checks (401, ban, project, scope), media type (415), body
 * and parameters (400), and last the handler's own.
 */
export async function serve(
  operationId: string,
  route: RouteDefinition,
  state: RequestState,
  options: HttpAppOptions,
): Promise<void> {
  const { request, response, params, log, path, requestId } = state;
  const { method = '', headers } = request;
  const handler = options.handlers[operationId] as (call: Call<RouteDefinition>) => Promise<unknown>;
  state.errorPages = route.errorPages === true;
  await options.limitRate?.(request, path);
  const admission = await options.guard(route, { method, headers, params, log });
  if (hasBody(request) && route.rawBody === undefined)
    checkMediaType(request, admission.jsonOnly, route.body !== undefined);
  const json = route.body === undefined ? undefined : await readJson(request, response);
  const raw =
    route.rawBody === undefined ? noBytes : await readBytes(request, response, route.rawBody.maxBytes);
  const [query, body] = validate([
    { schema: route.query, value: state.query, root: 'query' },
    { schema: route.body, value: json, root: 'body' },
  ]);
  const call = {
    ...admission.context,
    ...{ params, query, body, json, raw, headers, path, requestId, log },
    method: route.method.toUpperCase(),
    setHeader: (name: string, value: string | readonly string[]) => response.setHeader(name, value),
  };
  const answer = await (route.hot === true
    ? handler(call as unknown as Call<RouteDefinition>)
    : whileWanted(response, options.deadlineMs ?? defaultDeadlineMs, (signal) =>
        handler({ ...call, signal } as Call<RouteDefinition>),
      ));
  if (options.checkAnswers === true) checkAnswer(operationId, route, answer);
  if (!request.complete) discardRest(request, response);
  const { status, mediaType } = route.response;
  if (status === 303 && !response.hasHeader('Location')) throw new Error(`${operationId} leads nowhere`);
  if (mediaType === undefined) sendJson(response, status, answer);
  else sendText(response, status, mediaType, answer as string);
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

/** Answers a request that was refused or failed; what is not its caller's mistake is logged and reveals nothing. */
export function fail(error: unknown, state: RequestState, options: HttpAppOptions): void {
  const { request, response, log, route } = state;
  if (error instanceof ClientGoneError || response.destroyed) {
    response.destroy();
    return;
  }
  let problem = error instanceof ProblemError ? error : options.translateError(error);
  if (problem === undefined || problem.status >= 500) {
    log.error({ err: error, route }, 'request failed');
  }
  problem ??= new ProblemError('internal_error');
  if (!request.complete) discardRest(request, response);
  const { errorPage } = options;
  if (errorPage !== undefined && isForPeople(problem, state)) {
    // Nothing of another site gets into a page of ours, whatever slips through its escaping.
    response.setHeader('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'");
    sendText(response, problem.status, 'text/html', errorPage(problemFor(problem, options.docsUrl)));
  } else sendProblem(response, problem, options.docsUrl);
}

/** Whether a person looks at the answer (Fetch metadata; absent from what is no browser). */
const isForPeople = (problem: ProblemError, { errorPages, request }: RequestState): boolean =>
  errorPages && (problem.page || request.headers['sec-fetch-mode'] === 'navigate');
