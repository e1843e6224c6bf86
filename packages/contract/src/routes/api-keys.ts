import { z } from 'zod';
import { apiKey, apiKeyScopes } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes, listOf } from './route.ts';

export const apiKeyRoutes = defineRoutes({
  createApiKey: {
    method: 'post',
    path: '/v1/projects/{projectId}/api-keys',
    summary: 'Create an API key; its value is shown this once',
    tag: 'API keys',
    auth: ['session'],
    cors: 'dashboard',
    body: z.strictObject({
      name: text({ max: 100 }),
      scope: z.enum(apiKeyScopes).default('full'),
      expiresAt: z.iso
        .datetime({ offset: true })
        .nullable()
        .optional()
        .meta({ description: 'In the future; left out or null: never.' }),
    }),
    response: { status: 201, body: apiKey.extend({ value: z.string() }), description: 'The new key.' },
    errors: ['plan_limit_reached'],
  },
  listApiKeys: {
    method: 'get',
    path: '/v1/projects/{projectId}/api-keys',
    summary: 'List the API keys of a project; revoked ones for 30 days',
    tag: 'API keys',
    auth: ['session'],
    cors: 'dashboard',
    response: { status: 200, body: listOf(apiKey), description: 'Every key, newest first.' },
  },
  revokeApiKey: {
    method: 'delete',
    path: '/v1/projects/{projectId}/api-keys/{keyId}',
    summary: 'Revoke an API key at once',
    tag: 'API keys',
    auth: ['session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The key works no more.' },
  },
});
