import { describe, expect, it } from '@jest/globals';
import { problemOf } from '@millrace/contract';
import { ApiError } from './api-error.ts';
import { type Client, type ClientOptions, createClient } from './client.ts';

interface Sent {
  url: string;
  init: RequestInit;
}

/** A client whose requests go nowhere: they are kept, and answered so. */
function clientOf(
  answer: () => Response,
  options: Partial<ClientOptions> = {},
): { client: Client; sent: Sent[] } {
  const sent: Sent[] = [];
  const fake: typeof fetch = (url, init = {}) => {
    sent.push({ url: url as string, init });
    return Promise.resolve(answer());
  };
  return { client: createClient({ baseUrl: 'https://api.example.com', fetch: fake, ...options }), sent };
}
const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } });
const problem = (body: unknown, headers: Record<string, string> = {}): Response =>
  json(429, body, { 'content-type': 'application/problem+json', ...headers });
async function failureOf(call: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await call.catch((reason: unknown) => reason);
  if (!(error instanceof ApiError)) throw new Error('no ApiError', { cause: error });
  return error;
}

describe('createClient', () => {
  it('sends what the route table says', async () => {
    const { client, sent } = clientOf(() => json(201, { id: 'dom_1' }), {
      bearer: 'svk_x',
      headers: { 'x-a': 'b' },
    });
    const domain = await client.addDomain({
      projectId: 'prj_1',
      body: { hostname: 'a.example' },
      idempotencyKey: 'k',
    });
    expect(domain).toEqual({ id: 'dom_1' });
    expect(sent[0]?.url).toBe('https://api.example.com/v1/projects/prj_1/domains');
    expect(sent[0]?.init).toMatchObject({
      method: 'POST',
      body: '{"hostname":"a.example"}',
      headers: {
        authorization: 'Bearer svk_x',
        'content-type': 'application/json',
        'idempotency-key': 'k',
        'x-a': 'b',
      },
    });
  });

  it('sends a file as it is', async () => {
    const { client, sent } = clientOf(() => json(200, {}));
    const raw = 'WEBVTT\n';
    await client.putCaptions({ projectId: 'prj_1', videoId: 'vid_1', language: 'pt-BR', raw });
    expect(sent[0]?.url).toBe('https://api.example.com/v1/projects/prj_1/videos/vid_1/captions/pt-BR');
    expect(sent[0]?.init).toMatchObject({ method: 'PUT', body: raw });
    expect(sent[0]?.init.headers).not.toHaveProperty('content-type');
  });

  it('encodes what goes into the address, and leaves out what is not given', async () => {
    const { client, sent } = clientOf(() => json(200, { data: [], nextCursor: null }));
    await client.listProjects({ query: { limit: 5, cursor: 'a+b/=' } });
    await client.listProjects({ query: {} });
    await client.listProjects({});
    await client.removeDomain({ projectId: '../x', domainId: 'a?b' });
    expect(sent.map(({ url }) => url.slice('https://api.example.com'.length))).toEqual([
      '/v1/projects?limit=5&cursor=a%2Bb%2F%3D',
      '/v1/projects',
      '/v1/projects',
      '/v1/projects/..%2Fx/domains/a%3Fb',
    ]);
    expect(sent[0]?.init.headers).toEqual({});
  });

  it('answers nothing for 204', async () => {
    const { client } = clientOf(() => new Response(null, { status: 204 }));
    await expect(client.removeDomain({ projectId: 'prj_1', domainId: 'dom_1' })).resolves.toBeUndefined();
  });

  it('throws the problem, with what a caller needs to go on', async () => {
    const body = problemOf('https://docs.example.com', 'rate_limited', { detail: 'Slow.' });
    const { client } = clientOf(() => problem(body, { 'retry-after': '7', 'x-request-id': 'req_1' }));
    const error = await failureOf(client.getProject({ projectId: 'prj_1' }));
    expect(error).toMatchObject({
      status: 429,
      code: 'rate_limited',
      retryAfter: 7,
      requestId: 'req_1',
      problem: body,
    });
    expect(error.message).toBe('429 rate_limited: Slow.');
  });

  it('throws too when something else answered', async () => {
    const { client } = clientOf(() => new Response('<h1>Bad gateway</h1>', { status: 502 }));
    const error = await failureOf(client.getProject({ projectId: 'prj_1' }));
    expect(error).toMatchObject({
      status: 502,
      code: 'unknown',
      problem: null,
      retryAfter: null,
      requestId: null,
    });
    const broken = clientOf(
      () => new Response('{', { status: 500, headers: { 'content-type': 'application/problem+json' } }),
    );
    expect(await failureOf(broken.client.getHealth({}))).toMatchObject({ status: 500, code: 'unknown' });
  });

  it('ends with the caller’s signal and with its own bound', async () => {
    const hanging: typeof fetch = (_url, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => {
          reject(init.signal?.reason as Error);
        });
      });
    const options = { baseUrl: 'https://api.example.com', fetch: hanging };
    const leaving = new AbortController();
    const call = createClient(options).getHealth({ signal: leaving.signal });
    leaving.abort(new Error('left'));
    await expect(call).rejects.toThrow('left');
    await expect(createClient({ ...options, timeoutMs: 10 }).getHealth({})).rejects.toMatchObject({
      name: 'TimeoutError',
    });
  });
});
