import { type Problem, type RouteDefinition } from '@millrace/contract';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Logger } from '../logger.ts';
import { type Metrics } from '../metrics.ts';
import { type ErrorTranslator, type Guard } from './call.ts';
import { type CorsOptions } from './cors.ts';

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

/** Answers what lies below a path that no route has; `next` for what it does not know. */
export interface Site {
  path: string;
  /** The address is seen without the path before it. */
  handler: (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;
}
