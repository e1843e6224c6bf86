import { z } from 'zod';
import { report } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes } from './route.ts';

export const reportRoutes = defineRoutes({
  createReport: {
    method: 'post',
    path: '/v1/projects/{projectId}/videos/{videoId}/reports',
    summary: 'File a viewer’s report; the operating team hears of it at once',
    tag: 'Videos',
    auth: ['key', 'session'],
    cors: 'dashboard',
    body: z.strictObject({ reason: text({ max: 200 }), detail: text({ min: 0, max: 2_000 }).optional() }),
    idempotent: true,
    response: { status: 201, body: report, description: 'The report as it was filed.' },
  },
});
