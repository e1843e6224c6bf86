import { z } from 'zod';
import { domain } from '../resources.ts';
import { defineRoutes, listOf } from './route.ts';

export const domainRoutes = defineRoutes({
  addDomain: {
    method: 'post',
    path: '/v1/projects/{projectId}/domains',
    summary: 'Add a domain to verify',
    tag: 'Domains',
    auth: ['key', 'session'],
    cors: 'dashboard',
    body: z.strictObject({
      hostname: z.string().meta({
        description: 'A host name; kept in lower case, as punycode, without a final dot.',
        examples: ['videos.example.com'],
      }),
    }),
    response: { status: 201, body: domain, description: 'The domain, with the DNS record to create.' },
    errors: ['plan_limit_reached', 'hostname_taken'],
  },
  listDomains: {
    method: 'get',
    path: '/v1/projects/{projectId}/domains',
    summary: 'List the domains of a project',
    tag: 'Domains',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 200, body: listOf(domain), description: 'Every domain, newest first.' },
  },
  verifyDomain: {
    method: 'post',
    path: '/v1/projects/{projectId}/domains/{domainId}/verify',
    summary: 'Look the DNS record up now',
    tag: 'Domains',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: {
      status: 200,
      body: domain,
      description: 'The domain as it is after the look-up; `lastCheck` says what was found.',
    },
    errors: ['plan_limit_reached', 'hostname_taken'],
  },
  removeDomain: {
    method: 'delete',
    path: '/v1/projects/{projectId}/domains/{domainId}',
    summary: 'Remove a domain; tokens issued for it live until they expire',
    tag: 'Domains',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The domain is gone.' },
  },
});
