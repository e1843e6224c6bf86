import { describe, expect, it } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { isInternal, type RouteDefinition, routes } from '../routes/index.ts';
import { openApiDocument } from './document.ts';

interface Operation {
  operationId: string;
  security: unknown[];
  parameters?: { name: string; in: string; required?: boolean; schema: Record<string, unknown> }[];
  responses: Record<string, { description: string; headers: object; content?: Record<string, unknown> }>;
}
const document = openApiDocument({ apiUrl: 'https://api.test', docsUrl: 'https://docs.test' });
const paths = document['paths'] as Record<string, Record<string, Operation>>;
const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
const operation = (id: string): Operation => {
  const found = operations.find(({ operationId }) => operationId === id);
  if (found === undefined) throw new Error(`no operation ${id}`);
  return found;
};

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1 [API-201]', async () => {
    const result = await new Validator().validate(structuredClone(document));
    expect(result.errors ?? []).toEqual([]);
    expect(document['openapi']).toBe('3.1.0');
  });

  it('says which version of the contract it describes [VER-001]', () => {
    expect(document['info']).toMatchObject({ version: '0.16.1' });
  });

  it('has every route of customers, and none of the team or the services [API-201]', () => {
    const table = Object.entries(routes as Record<string, RouteDefinition>);
    const customers = table.filter(([, route]) => !isInternal(route)).map(([id]) => id);
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(customers.sort());
    expect(Object.keys(paths).filter((path) => /^\/(admin|internal)/.test(path))).toEqual([]);
  });

  it('names every credential that a route takes', () => {
    expect(operation('getHealth').security).toEqual([]);
    expect(operation('createProject').security).toEqual([{ session: [] }]);
    expect(operation('getVideo').security).toEqual([{ apiKey: [] }, { session: [] }]);
  });

  it('says which codes a route answers with which status [VER-003]', () => {
    const codes = (id: string): Record<string, string[]> =>
      Object.fromEntries(
        Object.entries(operation(id).responses)
          .filter(([status]) => status >= '400')
          .map(([status, { description }]) => [
            status,
            [...description.matchAll(/\/errors\/(\w+)/g)].map(([, code]) => code ?? ''),
          ]),
      );
    expect(codes('startUpload')).toEqual({
      400: ['invalid_request'],
      401: ['unauthorized'],
      403: expect.arrayContaining(['account_banned', 'insufficient_scope', 'plan_limit_reached']) as unknown,
      404: ['not_found'],
      409: ['upload_closed'],
      415: ['unsupported_media_type'],
      422: ['invalid_request'],
      429: ['rate_limited'],
      500: ['internal_error'],
      503: ['service_unavailable'],
    });
    expect(codes('getVideo')[403]).not.toContain('insufficient_scope');
    expect(codes('getHealth')[429]).toBeUndefined();
  });

  it('describes the query, the path and the headers of requests and answers', () => {
    const parameters = operation('listVideos').parameters ?? [];
    expect(parameters.map(({ in: place, name }) => `${place} ${name}`)).toEqual([
      'path projectId',
      ...['limit', 'cursor', 'status', 'q', 'createdFrom', 'createdTo'].map((name) => `query ${name}`),
    ]);
    const [, limit] = parameters;
    expect(limit?.required ?? false).toBe(false);
    expect(limit?.schema).toEqual(expect.objectContaining({ type: 'integer', default: 20, maximum: 100 }));
    expect(operation('startUpload').parameters?.map(({ name }) => name)).toContain('Idempotency-Key');
    const { responses } = operation('startUpload');
    expect(Object.keys(responses[201]?.headers ?? {})).toEqual(['X-Request-Id']);
    expect(Object.keys(responses[429]?.headers ?? {})).toEqual(['X-Request-Id', 'Retry-After']);
    expect(Object.keys(responses[404]?.content ?? {})).toEqual(['application/problem+json']);
  });
});
