import { describe, expect, it } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { isInternal, type RouteDefinition, routes } from '../routes/index.ts';
import { openApiDocument } from './document.ts';

interface Operation {
  operationId: string;
  security: unknown[];
  parameters?: { name: string; in: string; required?: boolean; schema: Record<string, unknown> }[];
  requestBody?: { content: Record<string, unknown> };
  responses: Record<string, { description: string; headers: object; content?: Record<string, unknown> }>;
}
/** As much of a JSON schema as is looked at here. */
interface Schema {
  properties?: Record<string, Schema>;
  anyOf?: Schema[];
  enum?: string[];
  const?: string;
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

  it('has JSON bodies, but for pages, scripts, redirects, captions and what payment providers sign [CNV-020]', () => {
    const types = ({ requestBody, responses }: Operation): Record<string, string[]> => {
      const answers = Object.entries(responses).map(([status, { content = {} }]) => [
        status,
        ...Object.keys(content),
      ]);
      return {
        asks: Object.keys(requestBody?.content ?? {}),
        answers: answers.flatMap(([status = '', ...named]) => (status < '400' ? named : [])),
        refusals: [...new Set(answers.flatMap(([status = '', ...named]) => (status < '400' ? [] : named)))],
      };
    };
    const isJson = ({ asks = [], answers = [], refusals }: Record<string, string[]>): boolean =>
      [...asks, ...answers].every((type) => type === 'application/json') &&
      refusals?.join() === 'application/problem+json';
    const others = operations.filter((each) => !isJson(types(each)));
    expect(Object.fromEntries(others.map((each) => [each.operationId, types(each)]))).toEqual({
      getDocs: { asks: [], answers: ['text/html'], refusals: ['application/problem+json'] },
      getDocsScript: { asks: [], answers: ['text/javascript'], refusals: ['application/problem+json'] },
      getErrorPage: { asks: [], answers: ['text/html'], refusals: ['application/problem+json'] },
      putCaptions: { asks: ['*/*'], answers: ['application/json'], refusals: ['application/problem+json'] },
      billingCallback: {
        ...{ asks: ['*/*'], answers: ['application/json'] },
        refusals: ['application/problem+json'],
      },
      startSignIn: { asks: [], answers: [], refusals: ['application/problem+json', 'text/html'] },
      finishSignIn: { asks: [], answers: [], refusals: ['application/problem+json', 'text/html'] },
    });
  });

  it('names every field and parameter in camelCase [CNV-004]', () => {
    const names = new Set<string>();
    const look = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      const { properties, in: place, name } = value as Schema & { in?: string; name?: string };
      if (typeof properties === 'object') for (const field of Object.keys(properties)) names.add(field);
      if (place === 'query' || place === 'path') names.add(name ?? '');
      for (const inner of Object.values(value)) look(inner);
    };
    look(document);
    expect(names.size).toBeGreaterThan(80);
    // As OpenID Connect calls it.
    names.delete('error_description');
    expect([...names].filter((name) => !/^[a-z][a-z0-9]*([A-Z][a-z0-9]*)*$/.test(name))).toEqual([]);
  });

  it('takes an Idempotency-Key for upload start and report filing alone [IDK-012]', () => {
    const takers = operations.filter(({ parameters = [] }) =>
      parameters.some(({ name }) => name === 'Idempotency-Key'),
    );
    expect(takers.map(({ operationId }) => operationId).sort()).toEqual(['createReport', 'startUpload']);
  });

  it.each([
    ['Video', 'status', 'uploading processing ready failed held'],
    [
      'Video',
      'failure.code',
      'unsupported_codec invalid_file no_video_track plan_limit_reached encoding_failed',
    ],
    ['Video', 'accessMode', 'protected'],
    ['User', 'role', 'owner member'],
    ['Account', 'planStatus', 'active pilot past_due canceled'],
    ['AccountPlan', 'status', 'active pilot past_due canceled'],
  ])('says that of %s the %s is one of: %s [VID-003, VID-012, VID-016]', (resource, path, values) => {
    const { schemas } = document['components'] as { schemas: Record<string, Schema> };
    const field = path.split('.').reduce<Schema | undefined>((schema, name) => {
      const shape = schema?.anyOf?.find(({ properties }) => properties !== undefined) ?? schema;
      return shape?.properties?.[name];
    }, schemas[resource]);
    expect((field?.enum ?? [field?.const]).join(' ')).toBe(values);
  });
});
