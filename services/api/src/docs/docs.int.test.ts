import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { errorCodes } from '@millrace/contract';
import { createTestApi, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

const get = async (path: string): Promise<{ status: number; headers: Headers; text: string }> => {
  const response = await fetch(api.url + path);
  return { status: response.status, headers: response.headers, text: await response.text() };
};

describe('what the API says of itself', () => {
  it('is a page for every error code, where the type of its problems leads [API-203]', async () => {
    for (const [code, { status }] of Object.entries(errorCodes)) {
      const page = await get(`/errors/${code}`);
      expect([code, page.status, page.headers.get('content-type')]).toEqual([
        code,
        200,
        'text/html; charset=utf-8',
      ]);
      expect(page.text).toContain(`<h1><code>${code}</code></h1>`);
      expect(page.text).toContain(`HTTP ${status}.`);
    }
  });

  it('tells on each of them whether to send the request again unchanged [ERR-008]', async () => {
    const no = 'Do not send the same request again unchanged.';
    for (const [code, { status }] of Object.entries(errorCodes)) {
      const { text } = await get(`/errors/${code}`);
      const expected =
        status === 429 ? 'Try again after <code>Retry-After</code>' : status >= 500 ? 'Try again, ' : no;
      expect(text).toContain(expected);
      expect([code, text.includes(no)]).toEqual([code, status < 500 && status !== 429]);
    }
  });

  it.each([
    ['billing_provider_error', 502, 'It will call again by itself.'],
    ['phone_verification_required', 403, 'must verify a phone number'],
  ] as const)(
    'knows %s, which no route answers in this version [ERR-103, ERR-104]',
    async (code, status, says) => {
      expect(errorCodes[code].status).toBe(status);
      const { text } = await get(`/errors/${code}`);
      expect(text).toContain(says);
      const { paths } = JSON.parse((await get('/openapi.json')).text) as { paths: object };
      expect(JSON.stringify(paths)).not.toContain(code);
    },
  );

  it.each(['/errors/no_such_code', '/errors/constructor', '/errors/%3Cscript%3E'])(
    'is nothing at %s',
    async (path) => {
      const { status, headers } = await get(path);
      expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json']);
    },
  );

  it('is the OpenAPI document with its own address, which every site may read [API-201]', async () => {
    const { headers, text } = await get('/openapi.json');
    const { openapi, servers } = JSON.parse(text) as { openapi: string; servers: { url: string }[] };
    expect([openapi, servers[0]?.url]).toEqual(['3.1.0', api.deps.config.API_URL]);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  it('is a reference whose page, scripts and styles all come from here [API-202]', async () => {
    const page = await get('/docs');
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self';/);
    const links = [...page.text.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, link]) => link ?? '');
    expect(links).toHaveLength(3);
    for (const link of links) {
      const { status, text } = await get(`/${link}`);
      expect([link, status, text.length > 50]).toEqual([link, 200, true]);
    }
    expect((await get('/docs/start.js')).headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  });

  it.each(['/docs/assets/../../package.json', '/docs/assets/%2e%2e/package.json', '/docs/assets/none.js'])(
    'has no file at %s',
    async (path) => {
      const { status, headers } = await get(path);
      expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json']);
    },
  );
});
