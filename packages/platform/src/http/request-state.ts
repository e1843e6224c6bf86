import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Logger } from '../logger.ts';

/** A request, its answer, and what the steps in between find out. */
export interface RequestState {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Carries the request's id. */
  readonly log: Logger;
  /** Pattern of the route's path, for metrics, traces and the log; undefined until one fits. */
  route: string | undefined;
  params: Readonly<Record<string, string>>;
  /** Browsers are sent here: failures become pages. */
  errorPages: boolean;
  path: string;
  query: Record<string, string | string[]>;
}
