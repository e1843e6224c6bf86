import { z } from 'zod';
import { playbackToken, previewToken } from '../resources.ts';
import { defineRoutes } from './route.ts';

export const playbackRoutes = defineRoutes({
  createPlaybackToken: {
    method: 'post',
    path: '/v1/projects/{projectId}/videos/{videoId}/playback-tokens',
    summary: 'Create a playback token for one video on one verified domain',
    tag: 'Playback',
    auth: ['key', 'session'],
    keyScope: 'playback',
    cors: 'dashboard',
    body: z.strictObject({
      domain: z.string().min(1).max(255).meta({ description: 'A verified domain of the project.' }),
      expiresInSeconds: z
        .int()
        .min(60)
        .max(86_400)
        .optional()
        .meta({ description: 'Default: the video’s length and an hour, an hour at least.' }),
      viewerIp: z.unknown().optional().meta({ description: 'Ignored.' }),
    }),
    response: { status: 201, body: playbackToken, description: 'The token and the URLs that carry it.' },
    errors: ['domain_not_verified', 'plan_limit_reached', 'video_not_ready'],
  },
  createPreviewToken: {
    method: 'post',
    path: '/v1/projects/{projectId}/videos/{videoId}/preview-token',
    summary: 'Create a preview token for the dashboard',
    description:
      'Takes no body. The token works for an hour, in a frame on the dashboard host that asks for it; what plays is not counted as watched time.',
    tag: 'Playback',
    auth: ['session'],
    cors: 'dashboard',
    response: { status: 201, body: previewToken, description: 'The token, and the page to append it to.' },
    errors: ['plan_limit_reached', 'video_not_ready', 'not_configured'],
  },
});
