import { z } from 'zod';
import { defineRoutes } from './route.ts';

export const healthRoutes = defineRoutes({
  getHealth: {
    method: 'get',
    path: '/health',
    summary: 'Whether the API can answer; never rate limited',
    tag: 'Service',
    auth: [],
    cors: 'any',
    response: { status: 200, body: z.object({ status: z.literal('ok') }), description: 'It can.' },
    errors: ['service_unavailable'],
  },
});
