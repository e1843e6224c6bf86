import { z } from 'zod';
import { uploadContentTypes, uploadToken } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes } from './route.ts';

export const uploadTokenRoutes = defineRoutes({
  createUploadToken: {
    method: 'post',
    path: '/v1/projects/{projectId}/upload-tokens',
    summary: 'Create an upload token, for one upload by a browser',
    description:
      'Call it from your server. The token starts one upload and completes it, from pages of one verified domain; it reads, lists, deletes and plays nothing.',
    tag: 'Uploads',
    auth: ['key', 'session'],
    cors: 'dashboard',
    body: z.strictObject({
      domain: z
        .string()
        .min(1)
        .max(255)
        .meta({ description: 'A verified domain of the project, where the browser runs.' }),
      maxSizeBytes: z
        .int()
        .min(1)
        .optional()
        .meta({ description: 'The most bytes that the file may have. Default: what the plan allows.' }),
      contentType: z
        .enum(uploadContentTypes)
        .optional()
        .meta({ description: 'The one type that the upload may declare. Default: any of them.' }),
      title: text({ max: 200 }).optional(),
      expiresInSeconds: z.int().min(300).max(7_200).default(3_600),
    }),
    response: { status: 201, body: uploadToken, description: 'The token. Never log it.' },
    errors: ['plan_limit_reached', 'domain_not_verified', 'upload_not_configured'],
  },
});
