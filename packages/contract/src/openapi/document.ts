import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiResponsesObject } from 'zod-openapi';
import { problem } from '../errors.ts';
import {
  type AuthKind,
  isInternal,
  parameterNames,
  type PathParameter,
  pathParameters,
  type RouteDefinition,
  routes,
} from '../routes/index.ts';
import { codesByStatus } from './answers.ts';

/** The version of the contract that the document describes. */
const contractVersion = '0.16.1';

/** Names of the security schemes below. */
const schemes: Partial<Record<AuthKind, string>> = {
  key: 'apiKey',
  session: 'session',
  upload_token: 'uploadToken',
};

const requestId = z.string().meta({ description: 'Names this request in the logs.' });
const location = z.string().meta({ description: 'Where to go on.' });
const retryAfter = z.int().min(1).meta({ description: 'Seconds to wait before trying again.' });

const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x20-\x7e]+$/)
  .optional()
  .meta({
    description: 'Makes a retry safe: for 24 hours the same key answers what the first success answered.',
  });

/**
 * The OpenAPI 3.1 document of the routes that customers may call, made of the very schemas that validate.
 * @param docsUrl base of problem types, without a final slash
 */
export function openApiDocument({
  apiUrl,
  docsUrl,
}: {
  apiUrl: string;
  docsUrl: string;
}): Record<string, unknown> {
  const table = Object.entries(routes as Record<string, RouteDefinition>).filter(
    ([, route]) => !isInternal(route),
  );
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const [operationId, route] of table) {
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(operationId, route, docsUrl) };
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Millrace',
        version: contractVersion,
        description:
          'Upload videos, have them encoded to HLS, and play them on your own domains with signed tokens.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: apiUrl }],
      tags: [...new Set(table.map(([, { tag }]) => tag))].map((name) => ({ name })),
      paths: paths,
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', description: 'A key of the project; from servers only.' },
          uploadToken: {
            type: 'http',
            scheme: 'bearer',
            description: 'A single-use upload token, with the `Origin` of its domain; from browsers.',
          },
          session: { type: 'apiKey', in: 'cookie', name: 'svc_session', description: 'Set by sign-in.' },
        },
      },
    },
    { override: withoutDatePattern },
  ) as unknown as Record<string, unknown>;
}

/** `format` says it; the pattern that checks leap years helps no reader. */
const withoutDatePattern = ({ jsonSchema }: { jsonSchema: { format?: string; pattern?: string } }): void => {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
};

function operationOf(
  operationId: string,
  route: RouteDefinition,
  docsUrl: string,
): ZodOpenApiOperationObject {
  const names = parameterNames(route.path) as PathParameter[];
  const path = z.object(Object.fromEntries(names.map((name) => [name, pathParameters[name]])));
  return {
    ...{ operationId, summary: route.summary, tags: [route.tag] },
    ...(route.description === undefined ? {} : { description: route.description }),
    security: route.auth.flatMap((kind) => (schemes[kind] === undefined ? [] : [{ [schemes[kind]]: [] }])),
    requestParams: {
      ...(names.length === 0 ? {} : { path }),
      ...(route.query === undefined ? {} : { query: route.query }),
      ...(route.idempotent === true ? { header: z.object({ 'Idempotency-Key': idempotencyKey }) } : {}),
    },
    ...(route.rawBody === undefined ? {} : { requestBody: rawBodyOf(route.rawBody) }),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: route.body } } } }),
    responses: responsesOf(route, docsUrl),
  };
}

function rawBodyOf({ description, example }: NonNullable<RouteDefinition['rawBody']>) {
  const content = { '*/*': { schema: z.string(), ...(example === undefined ? {} : { example }) } };
  return { required: true, content, ...(description === undefined ? {} : { description }) };
}

function responsesOf(route: RouteDefinition, docsUrl: string): ZodOpenApiResponsesObject {
  const { status, body, description, mediaType = 'application/json' } = route.response;
  const responses: Record<string, unknown> = {
    [status]: {
      description,
      headers: z.object({ 'X-Request-Id': requestId, ...(status === 303 ? { Location: location } : {}) }),
      ...(body === undefined ? {} : { content: { [mediaType]: { schema: body } } }),
    },
  };
  for (const [code, codes] of codesByStatus(route)) {
    const waits = codes.some((each) => each === 'rate_limited' || each === 'service_unavailable');
    responses[code] = {
      description: codes.map((each) => `[\`${each}\`](${docsUrl}/errors/${each})`).join(', '),
      headers: z.object({
        'X-Request-Id': requestId,
        ...(waits ? { 'Retry-After': retryAfter.optional() } : {}),
      }),
      content: {
        'application/problem+json': { schema: problem },
        ...(route.errorPages === true ? { 'text/html': { schema: z.string() } } : {}),
      },
    };
  }
  return responses as ZodOpenApiResponsesObject;
}
