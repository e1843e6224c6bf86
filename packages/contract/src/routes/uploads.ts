import { z } from 'zod';
import { resumedUpload, upload, uploadContentTypes, video } from '../resources.ts';
import { looseText, text } from '../text.ts';
import { defineRoutes } from './route.ts';

/** Parts that a complete call may name: as many as an upload may have. */
const mostParts = 8_000;

export const uploadRoutes = defineRoutes({
  startUpload: {
    method: 'post',
    path: '/v1/projects/{projectId}/uploads',
    summary: 'Start an upload: create a video and get a URL for each part',
    description: 'PUT the bytes of each part to its URL, keep the ETag of each answer, then complete.',
    tag: 'Uploads',
    auth: ['key', 'session', 'upload_token'],
    cors: 'https',
    body: z.strictObject({
      title: text({ max: 200 }).optional(),
      fileName: looseText({ max: 255 }).optional(),
      sizeBytes: z.int().min(1).meta({ description: 'Size of the file; the plan sets the maximum.' }),
      contentType: z.enum(uploadContentTypes),
    }),
    idempotent: true,
    response: { status: 201, body: upload, description: 'The upload, with its video in `uploading`.' },
    errors: [
      'plan_limit_reached',
      'origin_missing',
      'domain_mismatch',
      'domain_not_verified',
      'upload_closed',
    ],
  },
  getUpload: {
    method: 'get',
    path: '/v1/projects/{projectId}/uploads/{uploadId}',
    summary: 'Resume an upload',
    description:
      'Gives fresh part URLs, lists the parts held, and extends `expiresAt` by 24 hours, up to 7 days after the start.',
    tag: 'Uploads',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 200, body: resumedUpload, description: 'The open upload.' },
    errors: ['upload_closed'],
  },
  completeUpload: {
    method: 'post',
    path: '/v1/projects/{projectId}/uploads/{uploadId}/complete',
    summary: 'Complete an upload: join its parts and start encoding',
    description: 'Names exactly the uploaded parts, contiguous from 1, in any order.',
    tag: 'Uploads',
    auth: ['key', 'session', 'upload_token'],
    cors: 'https',
    body: z.strictObject({
      parts: z
        .array(z.strictObject({ partNumber: z.int().min(1).max(10_000), etag: z.string().min(1).max(200) }))
        .max(mostParts),
    }),
    response: { status: 200, body: video, description: 'The video, now `processing`.' },
    errors: [
      'invalid_parts',
      'plan_limit_reached',
      'upload_closed',
      'origin_missing',
      'domain_mismatch',
      'service_unavailable',
    ],
  },
  cancelUpload: {
    method: 'delete',
    path: '/v1/projects/{projectId}/uploads/{uploadId}',
    summary: 'Cancel an upload: remove its parts and its video',
    tag: 'Uploads',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The upload and its video are gone.' },
    errors: ['upload_closed'],
  },
});
