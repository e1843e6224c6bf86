import { describe, expect, it } from '@jest/globals';
import { type RouteDefinition, routes } from '@millrace/contract';
import { openApiDocument } from '@millrace/contract/openapi';
import { learn } from './memory.ts';
import { type OpenApi, sessionOperations } from './operations.ts';
import { sampleOf } from './sample.ts';

const document = openApiDocument({
  apiUrl: 'https://api.example.com',
  docsUrl: 'https://docs.example.com',
}) as unknown as OpenApi;
const operations = sessionOperations(document);
const bodyOf = (id: string, known = new Map<string, unknown>()): unknown => {
  const body = operations.find((operation) => operation.id === id)?.body;
  return body?.json === true ? sampleOf(body.schema, document, known) : body;
};

describe('the console’s operations', () => {
  it('are those of the route table that take a session', () => {
    const table = Object.entries(routes as Record<string, RouteDefinition>);
    const ids = table.filter(([, { auth }]) => auth.includes('session')).map(([id]) => id);
    expect(operations.map(({ id }) => id).sort()).toEqual(ids.sort());
  });

  it('begin with a body that has what is required, and what is known', () => {
    expect(bodyOf('createProject')).toEqual({ name: '' });
    expect(bodyOf('startUpload')).toEqual({ sizeBytes: 1, contentType: 'video/mp4' });
    expect(bodyOf('joinWhitelist')).toEqual({ planId: 'starter', email: '' });
    expect(bodyOf('verifyPhone', new Map([['code', '123456']]))).toEqual({ challengeId: '', code: '123456' });
    expect(bodyOf('createWebhookEndpoint')).toEqual({
      url: 'https://hooks.example.com/millrace',
      events: ['video.ready'],
    });
    expect(bodyOf('putCaptions')).toMatchObject({ json: false, example: expect.stringMatching(/^WEBVTT/) });
    expect(bodyOf('getMe')).toBeNull();
  });
});

describe('learn', () => {
  it('notes ids and codes by the field that takes them, the first of a kind', () => {
    const answer = {
      data: [{ id: 'prj_2', name: 'prj_?' }, { id: 'prj_1' }],
      challenge: { challengeId: 'phc_1', testCode: '123456' },
      hostname: 'a.example.com',
      title: 'evt_1',
      none: null,
    };
    expect(Object.fromEntries(learn(answer))).toEqual({
      ...{ projectId: 'prj_2', challengeId: 'phc_1', code: '123456', domain: 'a.example.com' },
    });
  });

  it('takes whatever comes', () => {
    for (const nothing of [undefined, null, '', 'text', 3, []]) expect(learn(nothing).size).toBe(0);
  });
});
