import {
  type AnswerOf,
  type BodyInputOf,
  type OperationId,
  type ParamsOf,
  parameterNames,
  type Problem,
  type QueryInputOf,
  type RouteDefinition,
  type Routes,
  routes,
} from '@millrace/contract';
import { ApiError } from './api-error.ts';

export interface ClientOptions {
  /** Without a final slash. Admin and internal routes have a base of their own. */
  baseUrl: string;
  /** An API key, upload token or admin token. */
  bearer?: string;
  /** More headers of every request: `cookie`, `x-internal-secret`. */
  headers?: Readonly<Record<string, string>>;
  /** How long one call may take, in milliseconds; 30 s unless told. */
  timeoutMs?: number;
  /** `globalThis.fetch` unless told. */
  fetch?: typeof fetch;
}

/** What a call takes beside the path's parameters. */
interface Extras {
  idempotencyKey?: string;
  signal?: AbortSignal;
}
type Loose<T> = { [K in keyof T]: T[K] | number };

/** Path parameters by their name, `query` and `body` where the route has them; `raw` where the body is bytes. */
type InputOf<R extends RouteDefinition> = ParamsOf<R> &
  (R extends { rawBody: object } ? { raw: string | Uint8Array<ArrayBuffer> } : unknown) &
  (QueryInputOf<R> extends undefined ? unknown : { query?: Loose<QueryInputOf<R>> }) &
  (BodyInputOf<R> extends undefined ? unknown : { body: BodyInputOf<R> }) &
  Extras;

/**
 * A method for each operation of the API. Resolves with the answer's body (undefined for 204).
 * @throws {ApiError} for every answer that is not a success; network failures reject as `fetch` does
 */
export type Client = {
  [K in OperationId]: (input: InputOf<Routes[K]>) => Promise<AnswerOf<Routes[K]>>;
};

/** A typed client over the route table; nothing is sent before a method is called. */
export function createClient(options: ClientOptions): Client {
  const methods = Object.entries(routes as Record<string, RouteDefinition>).map(
    ([operationId, route]) => [operationId, (input: CallInput) => call(options, route, input)] as const,
  );
  // Each method is right for its route; its type is written by the mapped type above alone.
  return Object.fromEntries(methods) as unknown as Client;
}

type CallInput = Record<string, unknown> & {
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  raw?: string | Uint8Array<ArrayBuffer>;
} & Extras;

async function call(options: ClientOptions, route: RouteDefinition, input: CallInput): Promise<unknown> {
  const send = options.fetch ?? fetch;
  const timeout = AbortSignal.timeout(options.timeoutMs ?? 30_000);
  const response = await send(options.baseUrl + targetOf(route, input), {
    method: route.method.toUpperCase(),
    headers: headersOf(options, input),
    signal: input.signal === undefined ? timeout : AbortSignal.any([timeout, input.signal]),
    ...bodyOf(input),
  });
  const text = await response.text();
  if (!response.ok) throw new ApiError(response, problemIn(response, text));
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}

function targetOf(route: RouteDefinition, input: CallInput): string {
  let path = route.path;
  for (const name of parameterNames(route.path)) {
    path = path.replace(`{${name}}`, encodeURIComponent(String(input[name])));
  }
  const given = Object.entries(input.query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(Object.fromEntries(given)).toString()}`;
}

function bodyOf({ body, raw }: CallInput): Pick<RequestInit, 'body'> {
  if (raw !== undefined) return { body: raw };
  return body === undefined ? {} : { body: JSON.stringify(body) };
}

function headersOf(options: ClientOptions, input: CallInput): Record<string, string> {
  return {
    ...options.headers,
    ...(options.bearer === undefined ? {} : { authorization: `Bearer ${options.bearer}` }),
    ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(input.idempotencyKey === undefined ? {} : { 'idempotency-key': input.idempotencyKey }),
  };
}

/** null when somebody else answered: a proxy, a wrong address. */
function problemIn(response: Response, text: string): Problem | null {
  if (response.headers.get('content-type') !== 'application/problem+json') return null;
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return null;
  }
}
