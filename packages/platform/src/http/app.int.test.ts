import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { defineRoutes, type Problem, ProblemError, text } from '@millrace/contract';
import { type CapturedLog, captureLogger, waitFor } from '@millrace/testing';
import { connect } from 'node:net';
import { z } from 'zod';
import { createMetrics } from '../metrics.ts';
import { createHttpApp } from './app.ts';
import { type Call } from './call.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const routes = defineRoutes({
  getThing: {
    method: 'get',
    path: '/v1/projects/{projectId}/things',
    summary: '',
    tag: '',
    auth: ['key', 'session'],
    cors: 'dashboard',
    query: z.object({ limit: z.string().regex(/^\d+$/).optional(), q: text({ max: 5 }).optional() }),
    response: { status: 200, body: z.object({ seen: z.unknown() }), description: '' },
  },
  getHot: {
    method: 'get',
    path: '/v1/projects/{projectId}/videos/{videoId}',
    summary: '',
    tag: '',
    auth: ['key'],
    cors: 'dashboard',
    hot: true,
    query: z.object({ limit: z.string().regex(/^\d+$/).optional() }),
    response: { status: 200, body: z.object({ seen: z.unknown() }), description: '' },
  },
  createThing: {
    method: 'post',
    path: '/v1/projects/{projectId}/things',
    summary: '',
    tag: '',
    auth: ['key', 'session'],
    cors: 'https',
    body: z.strictObject({
      name: text({ max: 5 }),
      parts: z.array(z.strictObject({ etag: z.string() })).optional(),
      kind: z.enum(['a', 'b']).optional(),
    }),
    response: { status: 201, body: z.object({ seen: z.unknown() }), description: '' },
  },
  deleteThing: {
    method: 'delete',
    path: '/v1/projects/{projectId}/things',
    summary: '',
    tag: '',
    auth: ['session'],
    response: { status: 204, description: '' },
  },
  getOpen: {
    method: 'get',
    path: '/open',
    summary: '',
    tag: '',
    auth: [],
    cors: 'any',
    response: { status: 200, body: z.object({ ok: z.boolean() }), description: '' },
  },
});

let server: HttpServer;
let base: string;
let port: number;
let log: CapturedLog;
const metrics = createMetrics({ service: 'test' });
/** Replaced by a test that needs another one. */
let handle: (call: Call<typeof routes.createThing>) => Promise<unknown>;
let jsonOnly = false;
let refuse: Error | null = null;
let guarded: string[] = [];

class PortDownError extends Error {}

beforeAll(async () => {
  log = captureLogger();
  const seen = (call: Call<typeof routes.createThing>): Promise<unknown> => handle(call);
  const handler = createHttpApp({
    routes,
    handlers: {
      getThing: seen,
      createThing: seen,
      getHot: (call: Call<typeof routes.getHot>) => handle(call as never),
      deleteThing: () => Promise.resolve(undefined),
      getOpen: () => Promise.resolve({ ok: true }),
    },
    guard: (route, request) => {
      guarded.push(`${request.method} ${route.path} ${JSON.stringify(request.params)}`);
      if (refuse !== null) return Promise.reject(refuse);
      return Promise.resolve({ context: { caller: 'me' }, jsonOnly });
    },
    translateError: (error) =>
      error instanceof PortDownError ? new ProblemError('service_unavailable', { retryAfter: 2 }) : undefined,
    cors: { dashboardOrigins: ['https://app.example.com'] },
    docsUrl: 'https://docs.example.com',
    newRequestId: () => `req_${Math.random().toString(36).slice(2)}`,
    checkAnswers: true,
    deadlineMs: 400,
    logger: log.logger,
    metrics,
  });
  server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    handler,
    docsUrl: 'https://docs.example.com',
    newRequestId: () => 'req_raw',
    logger: log.logger,
  });
  ({ port } = await server.listen());
  base = `http://127.0.0.1:${port}`;
});
afterAll(() => server.close());
beforeEach(() => {
  handle = (call) => Promise.resolve({ seen: { query: call.query, body: call.body, params: call.params } });
  jsonOnly = false;
  refuse = null;
  guarded = [];
});

const things = '/v1/projects/prj_1/things';

interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
  problem: Problem;
}
async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(base + path, init);
  const body: unknown = await response
    .text()
    .then((read) => (read === '' ? null : (JSON.parse(read) as unknown)));
  return { status: response.status, headers: response.headers, body, problem: body as Problem };
}
const post = (body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Answer> =>
  ask(things, {
    method: 'POST',
    body: body ?? null,
    headers: { 'content-type': 'application/json', ...headers },
  });
const postJson = (body: unknown): Promise<Answer> => post(JSON.stringify(body));

/** What the server sends back to these very bytes, until it closes. */
function exchange(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    socket.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject).on('close', () => {
      resolve(answer);
    });
  });
}
const exchangeTarget = (target: string): Promise<string> =>
  exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);

function expectProblem(answer: Answer, status: number, code: string): void {
  expect({ status: answer.status, code: answer.problem.code }).toEqual({ status, code });
  expect(answer.problem.status).toBe(status);
  expect(answer.problem.type).toBe(`https://docs.example.com/errors/${code}`);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
}

describe('routing', () => {
  it('answers with the route’s status, JSON and a request id [CNV-028]', async () => {
    const answer = await postJson({ name: 'a' });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    expect(answer.body).toEqual({ seen: { body: { name: 'a' }, params: { projectId: 'prj_1' } } });
  });

  it('answers 204 without a body, and HEAD as GET without one [CNV-026, CNV-031]', async () => {
    const deleted = await ask(things, { method: 'DELETE' });
    expect([deleted.status, deleted.body]).toEqual([204, null]);
    const get = await ask(things);
    const head = await ask(things, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(head.body).toBeNull();
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
  });

  it.each([
    ['an unknown path', 'GET', '/v1/nothing'],
    ['a method that the path lacks', 'PUT', things],
    ['OPTIONS that is no preflight', 'OPTIONS', things],
    ['an id of another form', 'GET', '/v1/projects/vid_1/things'],
    ['an id with a dash', 'GET', '/v1/projects/prj_1-2/things'],
    ['an id with an encoded slash', 'GET', '/v1/projects/prj_1%2F2/things'],
    ['an id with an encoded line feed after it', 'GET', '/v1/projects/prj_1%0A/things'],
    ['an empty id', 'GET', '/v1/projects//things'],
    ['a final slash', 'GET', `${things}/`],
    ['another case', 'GET', '/V1/projects/prj_1/things'],
    ['an encoded letter in a fixed part', 'GET', '/v1/%70rojects/prj_1/things'],
  ])(
    'answers 404 to %s, without asking the guard [CNV-003, CNV-025, ERR-101]',
    async (_what, method, path) => {
      expectProblem(await ask(path, { method }), 404, 'not_found');
      expect(guarded).toEqual([]);
    },
  );

  it.each(['text/html', 'application/xml', 'application/json;q=0', '*/*;q=0', 'image/', ',;'])(
    'answers JSON, and problems as such, whatever Accept says: %s [CNV-027]',
    async (accept) => {
      const answer = await ask(things, { headers: { accept } });
      expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
      expectProblem(await ask('/v1/nothing', { headers: { accept } }), 404, 'not_found');
    },
  );

  it('answers 404 to methods that fetch cannot send', async () => {
    for (const method of ['TRACE', 'PROPFIND']) {
      const answer = await exchange(`${method} ${things} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 404 /);
      expect(answer).toContain('"code":"not_found"');
    }
  });
});

describe('the address', () => {
  it.each([
    ['/v1/projects/%/things', 'path'],
    ['/v1/projects/%FF/things', 'path'],
    ['/v1/projects/%E0%A4%A/things', 'path'],
    ['/v1/projects/prj_1%00/things', 'path'],
    [`${things}?q=%`, 'query'],
    [`${things}?q=%00`, 'query'],
    [`${things}?q=%ED%A0%80`, 'query'],
    [`${things}?%C3=1`, 'query'],
    ['/nothing/%', 'path'],
  ])('%s is 400 naming the %s [CNV-024]', async (target, where) => {
    const answer = await exchangeTarget(target);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toMatch(/x-request-id: req_/i);
    expect(answer).toContain('application/problem+json');
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Problem;
    expect(problem.code).toBe('invalid_request');
    expect(problem.errors?.[0]?.path).toBe(where);
  });

  it('reads encoded query values once, with + as a space', async () => {
    const answer = await ask(`${things}?q=a%2Bb+c&unknown=1`);
    expect(answer.body).toEqual({ seen: { query: { q: 'a+b c' }, params: { projectId: 'prj_1' } } });
  });

  it.each(['limit=x', 'limit=1&limit=2', 'q=', 'q=abcdef', 'q=%0A'])(
    '?%s is 400 naming it',
    async (query) => {
      const answer = await ask(`${things}?${query}`);
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.problem.errors?.[0]?.path).toBe(query.split('=')[0]);
      expect(answer.problem.detail).toContain(query.split('=')[0]);
    },
  );

  it('ignores unknown parameters, whatever their name [CNV-010]', async () => {
    expect((await ask(`${things}?__proto__=1&constructor=2&toString=3`)).status).toBe(200);
  });
});

describe('the body', () => {
  it.each([
    ['truncated JSON', '{"name":'],
    ['text', 'hello'],
    ['nothing', ''],
    ['null', 'null'],
    ['an array', '[]'],
    ['a string', '"a"'],
    ['bytes that are not UTF-8', Buffer.from('7b226e616d65223a22ff227d', 'hex')],
    ['nesting without end', '['.repeat(100_000)],
    ['nesting deeper than anybody needs', `{"name":${'['.repeat(100)}${']'.repeat(100)}}`],
    ['more than 1 MiB', JSON.stringify({ name: 'a'.repeat(1024 * 1024) })],
  ])('%s is 400 [CNV-021, CNV-022, CNV-033]', async (_what, body) => {
    const answer = await post(body);
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.problem.errors?.[0]?.path).toBe('body');
    expect(JSON.stringify(answer.body)).not.toMatch(/\.ts|node_modules|at /);
  });

  it.each<[unknown, string, string]>([
    [{}, 'name', 'is required'],
    [{ name: 1 }, 'name', 'must be of type string'],
    [{ name: null }, 'name', 'must be of type string'],
    [{ name: ' ' }, 'name', 'is blank'],
    [{ name: 'a\0' }, 'name', 'contains NUL'],
    [{ name: 'a\ud800' }, 'name', 'contains a lone surrogate'],
    [{ name: 'a', extra: 1 }, 'extra', 'is not a known field'],
    [{ name: 'a', parts: [{ etag: '1' }, { etag: 2 }] }, 'parts[1].etag', 'must be of type string'],
    [{ name: 'a', parts: [{ etag: '1', more: 1 }] }, 'parts[0].more', 'is not a known field'],
    [{ name: 'a', parts: [{ etag: 'a\0' }] }, 'parts[0].etag', 'contains NUL'],
    [{ name: 'a', kind: 'c' }, 'kind', 'must be one of a, b'],
  ])('%j is 400 naming %s [CNV-009, CNV-014, CNV-034]', async (body, path, message) => {
    const answer = await postJson(body);
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.problem.errors).toEqual([{ path, message }]);
    expect(answer.problem.detail).toContain(path);
  });

  it('names a field called __proto__ and every field at fault at once [ERR-004]', async () => {
    const answer = await post('{"__proto__":{"name":"a"},"kind":1}');
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.problem.errors?.map(({ path }) => path).sort()).toEqual(['__proto__', 'kind', 'name']);
  });

  it('is read as JSON whatever its type, unless the guard wants application/json [SES-007, SES-008]', async () => {
    for (const type of [
      'text/plain',
      'text/plain; charset=ISO-8859-1',
      'application/x-www-form-urlencoded',
    ]) {
      expect((await post('{"name":"é"}', { 'content-type': type })).body).toMatchObject({
        seen: { body: { name: 'é' } },
      });
      jsonOnly = true;
      expectProblem(await post('{"name":"a"}', { 'content-type': type }), 415, 'unsupported_media_type');
      jsonOnly = false;
    }
    jsonOnly = true;
    const bare = await ask(things, { method: 'POST', body: Buffer.from('{"name":"a"}') });
    expectProblem(bare, 415, 'unsupported_media_type');
    expect((await post('{"name":"a"}', { 'content-type': 'Application/JSON; charset="UTF-8"' })).status).toBe(
      201,
    );
  });

  it('is 415 in another charset or with a Content-Encoding [CNV-023]', async () => {
    const latin1 = await post('{"name":"a"}', { 'content-type': 'application/json; charset=latin1' });
    expectProblem(latin1, 415, 'unsupported_media_type');
    for (const encoding of ['gzip', 'identity']) {
      expectProblem(
        await post('{"name":"a"}', { 'content-encoding': encoding }),
        415,
        'unsupported_media_type',
      );
    }
  });

  it('is ignored on a route without one, but 415 counts there too [CNV-011]', async () => {
    const body = { method: 'DELETE', body: '{"x"', headers: { 'content-type': 'text/plain' } };
    expect((await ask(things, body)).status).toBe(204);
    jsonOnly = true;
    expectProblem(await ask(things, body), 415, 'unsupported_media_type');
    expect((await ask(things, { method: 'DELETE' })).status).toBe(204);
  });

  it('without a length is cut off at 1 MiB too', async () => {
    const chunk = `${(64 * 1024).toString(16)}\r\n${'a'.repeat(64 * 1024)}\r\n`;
    const head = `POST ${things} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
    const answer = await exchange(`${head}${chunk.repeat(17)}0\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('is larger than 1048576 bytes');
  });

  it('that goes on and on after its refusal ends with its connection', async () => {
    refuse = new ProblemError('unauthorized');
    const chunk = `${(1024 * 1024).toString(16)}\r\n${'a'.repeat(1024 * 1024)}\r\n`;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    const closed = new Promise<number>((resolve) => socket.once('close', () => resolve(sent)));
    let sent = 0;
    socket.write(`POST ${things} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const pour = (): void => {
      if (socket.destroyed || sent === 200) return;
      sent++;
      socket.write(chunk, pour);
    };
    pour();
    expect(await closed).toBeLessThan(100);
  });

  it('that is refused does not break the connection it came on', async () => {
    refuse = new ProblemError('unauthorized');
    const body = JSON.stringify({ name: 'a'.repeat(500_000) });
    const head = `POST ${things} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;
    const answer = await exchange(
      `${head}\r\n${body}GET /open HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 401']);
  });

  it('is asked for only when it is wanted (100-continue)', async () => {
    const head = `POST ${things} HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nExpect: 100-continue\r\n`;
    refuse = new ProblemError('unauthorized');
    const refused = await exchange(`${head}\r\n`);
    expect(refused).toMatch(/^HTTP\/1\.1 401 [^]*connection: close/i);
    refuse = null;
    const taken = await exchange(`${head}Connection: close\r\n\r\n{"name":"a"}`);
    expect(taken).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });
});

describe('order of checks', () => {
  it('asks the guard before type, body and parameters are looked at', async () => {
    refuse = new ProblemError('insufficient_scope');
    jsonOnly = true;
    const answer = await ask(`${things}?limit=x`, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
    });
    expectProblem(answer, 403, 'insufficient_scope');
  });

  it('looks at the type before the body [AUT-010]', async () => {
    jsonOnly = true;
    expectProblem(await post('{', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
    expectProblem(await post('{'), 400, 'invalid_request');
  });

  it('runs no handler before all of that', async () => {
    handle = () => Promise.reject(new Error('ran'));
    expectProblem(await postJson({ name: '' }), 400, 'invalid_request');
  });
});

describe('failures', () => {
  it('answers a problem with its status, headers and errors [ERR-001, ERR-002, ERR-003]', async () => {
    handle = () =>
      Promise.reject(
        new ProblemError('rate_limited', {
          retryAfter: 0.2,
          detail: 'Slow.',
          errors: [{ path: 'a', message: 'b' }],
        }),
      );
    const answer = await postJson({ name: 'a' });
    expectProblem(answer, 429, 'rate_limited');
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(answer.body).toMatchObject({ detail: 'Slow.', errors: [{ path: 'a', message: 'b' }] });
  });

  it('names a way to authenticate with a 401', async () => {
    refuse = new ProblemError('unauthorized');
    expect((await ask(things)).headers.get('www-authenticate')).toBe('Bearer');
  });

  it('translates the errors of ports [ERR-007, ERR-010]', async () => {
    handle = () => Promise.reject(new PortDownError('host 10.0.0.1'));
    const answer = await postJson({ name: 'a' });
    expectProblem(answer, 503, 'service_unavailable');
    expect(answer.headers.get('retry-after')).toBe('2');
    expect(JSON.stringify(answer.body)).not.toContain('10.0.0.1');
  });

  it.each<[string, () => Promise<unknown>]>([
    ['rejects', () => Promise.reject(new Error('select secret from table'))],
    [
      'throws',
      () => {
        throw new Error('select secret from table');
      },
    ],
    ['answers what its schema does not have', () => Promise.resolve({ seen: 1, secret: 'secret' })],
    ['answers nothing', () => Promise.resolve(undefined)],
  ])(
    'a handler that %s is a 500 that reveals nothing, and is logged [ERR-006, ERR-005]',
    async (_what, broken) => {
      handle = broken;
      const answer = await postJson({ name: 'a' });
      expectProblem(answer, 500, 'internal_error');
      expect(answer.problem).not.toHaveProperty('detail');
      expect(JSON.stringify(answer.body)).not.toContain('secret');
      const requestId = answer.headers.get('x-request-id');
      expect(log.lines.some((line) => line.level === 'error' && line.fields['requestId'] === requestId)).toBe(
        true,
      );
    },
  );

  it('aborts a handler that takes too long, and tells its client to come back', async () => {
    const aborted = Promise.withResolvers<unknown>();
    handle = (call) => {
      call.signal.addEventListener('abort', () => aborted.resolve(call.signal.reason));
      return new Promise(() => undefined);
    };
    const answer = await postJson({ name: 'a' });
    expectProblem(answer, 503, 'service_unavailable');
    expect(answer.headers.get('retry-after')).toBe('1');
    await aborted.promise;
  });

  it('aborts a handler whose client left, and answers nobody', async () => {
    const started = Promise.withResolvers<AbortSignal>();
    handle = (call) => {
      started.resolve(call.signal);
      return new Promise(() => undefined);
    };
    const leaving = new AbortController();
    const asked = ask(things, { method: 'POST', body: '{"name":"a"}', signal: leaving.signal });
    const signal = await started.promise;
    leaving.abort();
    await expect(asked).rejects.toThrow('abort');
    await waitFor(() => signal.aborted);
    await waitFor(() => log.lines.some((line) => line.fields['status'] === 499));
  });
});

describe('a route that is found ahead of the router', () => {
  const hot = '/v1/projects/prj_1/videos/vid_2';

  it('is served like any other', async () => {
    const answer = await ask(`${hot}?limit=3`, { headers: { origin: 'https://app.example.com' } });
    expect(answer.status).toBe(200);
    const params = { projectId: 'prj_1', videoId: 'vid_2' };
    expect(answer.body).toEqual({ seen: { query: { limit: '3' }, params } });
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
    expect(guarded).toEqual([`GET ${routes.getHot.path} ${JSON.stringify(params)}`]);
    const head = await ask(hot, { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, null]);
  });

  it.each([
    [`${hot}?limit=x`, 400, 'invalid_request'],
    ['/v1/projects/prj_1/videos/prj_2', 404, 'not_found'],
    ['/v1/projects/prj_1/videos/vid-2', 404, 'not_found'],
    [`${hot}/`, 404, 'not_found'],
    [`${hot}/more`, 404, 'not_found'],
    [`/x${hot}`, 404, 'not_found'],
  ])('%s is %d %s', async (path, status, code) => {
    expectProblem(await ask(path), status, code);
  });

  it('is found by the router under an encoded id, and not at all by other methods', async () => {
    expect((await ask('/v1/projects/prj_1/videos/vid_%32')).body).toMatchObject({
      seen: { params: { videoId: 'vid_2' } },
    });
    expectProblem(await ask(hot, { method: 'DELETE' }), 404, 'not_found');
    expect(await exchangeTarget(`${hot}?limit=%`)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('fails like any other, whether its handler throws or rejects', async () => {
    refuse = new ProblemError('insufficient_scope');
    expectProblem(await ask(hot), 403, 'insufficient_scope');
    refuse = null;
    for (const failing of [
      () => Promise.reject(new Error('secret')),
      () => {
        throw new Error('secret');
      },
    ]) {
      handle = failing;
      expectProblem(await ask(hot), 500, 'internal_error');
    }
    handle = () => Promise.reject(new PortDownError('secret'));
    expectProblem(await ask(hot), 503, 'service_unavailable');
  });
});

describe('CORS', () => {
  const preflight = (path: string, origin: string, method: string): Promise<Answer> =>
    ask(path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'x' },
    });
  const granted = ({ headers }: Answer): [string | null, string | null] => [
    headers.get('access-control-allow-origin'),
    headers.get('access-control-allow-credentials'),
  ];

  it.each<[string, string, string, [string | null, string | null]]>([
    ['https route, any https origin', 'https://any.example', 'POST', ['https://any.example', null]],
    ['https route, the dashboard', 'https://app.example.com', 'POST', ['https://app.example.com', 'true']],
    ['https route, http origin', 'http://any.example', 'POST', [null, null]],
    ['https route, null origin', 'null', 'POST', [null, null]],
    ['dashboard route, the dashboard', 'https://app.example.com', 'GET', ['https://app.example.com', 'true']],
    ['dashboard route, any https origin', 'https://any.example', 'GET', [null, null]],
    [
      'dashboard route, a host that begins alike',
      'https://app.example.com.evil.example',
      'GET',
      [null, null],
    ],
    ['route without', 'https://app.example.com', 'DELETE', [null, null]],
  ])('%s [CRS-001, CRS-002, CRS-005]', async (_what, origin, method, expected) => {
    refuse = new ProblemError('unauthorized');
    const asked = await preflight(things, origin, method);
    expect(asked.status).toBe(204);
    expect(granted(asked)).toEqual(expected);
    expect(guarded).toEqual([]);
    const answer = await ask(things, { method, headers: { origin } });
    expect(answer.status).toBe(401);
    expect(granted(answer)).toEqual(expected);
    expect(answer.headers.get('access-control-expose-headers')).toBe(
      expected[0] === null ? null : 'Retry-After, X-Request-Id',
    );
    if (expected[0] !== null) {
      expect(asked.headers.get('access-control-allow-methods')).toBe(method);
      expect(asked.headers.get('access-control-allow-headers')).toBe(
        'authorization, content-type, idempotency-key',
      );
      expect(asked.headers.get('access-control-max-age')).toBe('600');
      expect(answer.headers.get('vary')).toBe('Origin');
    }
  });

  it('lets everybody read where the route says so', async () => {
    expect(granted(await ask('/open', { headers: { origin: 'http://x.example' } }))).toEqual(['*', null]);
  });
});

describe('observation', () => {
  it('counts and times by route pattern and never by address', async () => {
    await ask(`${things}?token=topsecret`);
    await ask('/v1/random/topsecret');
    const rendered = await waitFor(async () => {
      const now = await metrics.render();
      return now.includes('route="unmatched"') && now;
    });
    expect(rendered).toContain('route="/v1/projects/{projectId}/things",method="GET",status="200"');
    expect(rendered).toContain('millrace_http_request_duration_seconds_bucket');
    expect(rendered).not.toContain('topsecret');
    expect(log.text()).not.toContain('topsecret');
  });
});
