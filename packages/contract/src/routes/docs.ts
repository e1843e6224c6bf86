import { z } from 'zod';
import { defineRoutes } from './route.ts';

const page = { body: z.string(), mediaType: 'text/html' } as const;

/** What the API says of itself; for everybody. */
export const docsRoutes = defineRoutes({
  getOpenApi: {
    method: 'get',
    path: '/openapi.json',
    summary: 'This document',
    tag: 'Service',
    auth: [],
    cors: 'any',
    response: {
      status: 200,
      body: z.record(z.string(), z.unknown()),
      description: 'OpenAPI 3.1, of the schemas that validate.',
    },
  },
  getDocs: {
    method: 'get',
    path: '/docs',
    summary: 'The reference, to be read and tried',
    tag: 'Service',
    auth: [],
    response: { status: 200, ...page, description: 'A page.' },
  },
  getDocsScript: {
    method: 'get',
    path: '/docs/start.js',
    summary: 'What starts the reference',
    tag: 'Service',
    auth: [],
    response: { status: 200, body: z.string(), mediaType: 'text/javascript', description: 'A script.' },
  },
  getErrorPage: {
    method: 'get',
    path: '/errors/{code}',
    summary: 'What an error code means and what to do; the `type` of every problem leads here',
    tag: 'Service',
    auth: [],
    response: { status: 200, ...page, description: 'A page.' },
  },
});
