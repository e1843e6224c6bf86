import { z } from 'zod';
import { type ErrorCode } from '../errors.ts';

/**
 * Who may call a route (contract "Authentication"). `key`, `session` and `upload_token` are customers';
 * `admin` and `internal` routes listen on a port of their own.
 */
export type AuthKind = 'key' | 'session' | 'upload_token' | 'admin' | 'internal';

/**
 * Which browsers may read the answer (contract "Browsers on other origins"): `dashboard` origins with credentials, `https`
 * any https origin without, `any` everybody.
 */
export type CorsPolicy = 'dashboard' | 'https' | 'any';

/** One route: what is validated, answered and documented comes from here alone. */
export interface RouteDefinition {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `{name}` for each parameter; every name is in `pathParameters`. */
  path: string;
  summary: string;
  description?: string;
  tag: string;
  /** Empty: everybody. */
  auth: readonly AuthKind[];
  /** The least scope of a key that may call it; `full` unless told. */
  keyScope?: 'playback' | 'full';
  cors?: CorsPolicy;
  /**
   * Asked so often that it is found ahead of the router. Its handler answers from what the guard found and waits for
   * nothing: it gets no `signal`.
   */
  hot?: boolean;
  /** Asked so often that its video is found in the look-up that finds its caller. */
  finds?: 'video';
  /** Query parameters; unknown ones are ignored. */
  query?: z.ZodObject;
  /** JSON body; unknown fields are refused. */
  body?: z.ZodType;
  /** Takes the bytes of a body as they come, in bytes at most; instead of `body`. */
  rawBody?: { maxBytes: number; description?: string; example?: string };
  /** Takes an `Idempotency-Key`. */
  idempotent?: boolean;
  /** The one success answer; without `body` there is none. */
  response: {
    /** 303 has no body and leads to the `Location` that the handler sets. */
    status: 200 | 201 | 202 | 204 | 303;
    body?: z.ZodType;
    description: string;
    /** Of a body that is text and not JSON. */
    mediaType?: 'text/html' | 'text/javascript';
  };
  /** Browsers are sent here: those that show the answer get failures as a page. */
  errorPages?: boolean;
  /** Codes beyond those that follow from `auth`, `body` and the path. */
  errors?: readonly ErrorCode[];
}

export const defineRoutes = <const T extends Record<string, RouteDefinition>>(table: T): T => table;

export const idOf = (prefix: string): z.ZodString => z.string().regex(new RegExp(`^${prefix}_[A-Za-z0-9]+$`));

/** Every path parameter and its pattern; a path that does not match it is `404 not_found`. */
export const pathParameters = {
  projectId: idOf('prj').meta({ description: 'Id of a project.' }),
  domainId: idOf('dom').meta({ description: 'Id of a domain.' }),
  keyId: idOf('key').meta({ description: 'Id of an API key.' }),
  videoId: idOf('vid').meta({ description: 'Id of a video.' }),
  accountId: idOf('acc').meta({ description: 'Id of an account.' }),
  endpointId: idOf('whe').meta({ description: 'Id of a webhook endpoint.' }),
  deliveryId: idOf('del').meta({ description: 'Id of a delivery.' }),
  uploadId: idOf('upl').meta({ description: 'Id of an upload.' }),
  provider: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,31}$/)
    .meta({ description: 'Name of a provider.' }),
  code: z
    .string()
    .regex(/^[a-z][a-z0-9_]*$/)
    .meta({ description: 'An error code.' }),
  bootId: z
    .string()
    .regex(/^[0-9a-f]{8,64}$/)
    .meta({ description: 'Names a process from its start to its end.' }),
  jobId: idOf('job').meta({ description: 'Id of an encode job.' }),
  /** No id, so what is no tag is `400` (contract CAP-203): whoever handles it says so. */
  language: z.string().meta({ description: 'A BCP 47 tag, `pt-BR`, in any case.', maxLength: 35 }),
} as const satisfies Record<string, z.ZodType>;
export type PathParameter = keyof typeof pathParameters;

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;
/** The names of a path's parameters, in their order. */
export const parameterNames = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');

export type ParamsOf<R extends RouteDefinition> = Record<NamesIn<R['path']>, string>;
export type QueryOf<R extends RouteDefinition> = R extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : undefined;
export type QueryInputOf<R extends RouteDefinition> = R extends { query: infer Q extends z.ZodType }
  ? z.input<Q>
  : undefined;
export type BodyOf<R extends RouteDefinition> = R extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined;
export type BodyInputOf<R extends RouteDefinition> = R extends { body: infer B extends z.ZodType }
  ? z.input<B>
  : undefined;
export type AnswerOf<R extends RouteDefinition> = R['response'] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined;

/** True for routes that must never be served on the public port. */
export const isInternal = (route: RouteDefinition): boolean =>
  route.auth.includes('admin') || route.auth.includes('internal');

/** Query of lists that grow (contract "Lists"). */
export const pageQuery = {
  limit: z
    .string()
    .regex(/^[0-9]{1,3}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(1).max(100))
    .default(20)
    .meta({
      description: 'Rows in a page.',
      override: ({ jsonSchema }) => {
        delete jsonSchema.pattern;
        Object.assign(jsonSchema, { type: 'integer', minimum: 1, maximum: 100, default: 20 });
      },
    }),
  cursor: z.string().optional().meta({ description: '`nextCursor` of the page before.' }),
};

/** A list that comes whole. */
export const listOf = <T extends z.ZodType>(row: T) => z.object({ data: z.array(row) });
/** A page of a list that grows. */
export const pageOf = <T extends z.ZodType>(row: T) =>
  z.object({ data: z.array(row), nextCursor: z.string().nullable() });
