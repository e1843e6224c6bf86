import {
  type AnswerOf,
  type BodyOf,
  type ParamsOf,
  type ProblemError,
  type QueryOf,
  type RouteDefinition,
} from '@millrace/contract';
import { type IncomingHttpHeaders } from 'node:http';
import { type Logger } from '../logger.ts';

/** One request that passed all checks before the handler's own. */
export interface Call<R extends RouteDefinition> {
  params: ParamsOf<R>;
  query: QueryOf<R>;
  body: BodyOf<R>;
  /** The body as it came, before defaults: what an idempotency key is compared by. */
  json: unknown;
  /** The bytes of the body, on routes with `rawBody`; empty without one. */
  raw: Buffer;
  headers: IncomingHttpHeaders;
  /** Upper case; GET for a HEAD too. */
  method: string;
  /** The concrete path, without query. */
  path: string;
  requestId: string;
  /** Carries the request id. */
  log: Logger;
  /** Aborts when the client is gone or the request took too long. */
  signal: R extends { hot: true } ? undefined : AbortSignal;
  /** Sets a header of the answer; several values become several headers. */
  setHeader: (name: string, value: string | readonly string[]) => void;
}

/** Resolves with the body of the route's success answer; what it throws becomes a problem. */
export type Handler<R extends RouteDefinition, Context> = (call: Call<R> & Context) => Promise<AnswerOf<R>>;

/** What the guard sees: the request without its body. */
export interface GuardedRequest {
  method: string;
  headers: IncomingHttpHeaders;
  params: Readonly<Record<string, string>>;
  log: Logger;
}

export interface Admission {
  /** Joined to the call: who calls, and what was resolved on the way. */
  context: object;
  /** Refuse bodies that are not declared `application/json` (415); else the declared type is ignored. */
  jsonOnly: boolean;
}

/** Decides 401, ban, the project's 404 and scope, in that order; throws `ProblemError`. */
export type Guard = (route: RouteDefinition, request: GuardedRequest) => Promise<Admission>;

/** Turns an error of a port into an answer of the contract; undefined: our fault, `internal_error`. */
export type ErrorTranslator = (error: unknown) => ProblemError | undefined;
