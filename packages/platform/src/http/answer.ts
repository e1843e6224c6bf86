import { type Problem, type ProblemError, problemOf } from '@millrace/contract';
import { type ServerResponse } from 'node:http';

/** Sends a JSON body, or none for 204. HEAD gets the headers only (Node drops the body). */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status;
  if (body === undefined) {
    response.end();
    return;
  }
  const text = JSON.stringify(body);
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}

/** Sends text of another media type, in UTF-8. */
export function sendText(response: ServerResponse, status: number, mediaType: string, text: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', `${mediaType}; charset=utf-8`);
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}

/** Sends a problem (RFC 9457) with the headers that its status asks for. */
export function sendProblem(response: ServerResponse, error: ProblemError, docsUrl: string): void {
  const text = JSON.stringify(problemFor(error, docsUrl));
  response.statusCode = error.status;
  response.setHeader('Content-Type', 'application/problem+json');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  // RFC 9110 §11.6.1: a 401 names a way to authenticate.
  if (error.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (error.retryAfter !== undefined) {
    response.setHeader('Retry-After', Math.max(1, Math.ceil(error.retryAfter)));
  }
  response.end(text);
}

export const problemFor = (error: ProblemError, docsUrl: string): Problem =>
  problemOf(docsUrl, error.code, {
    status: error.status,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    ...(error.errors === undefined ? {} : { errors: error.errors }),
  });
