import { z } from 'zod';
import { video } from '../resources.ts';
import { text } from '../text.ts';
import { defineRoutes } from './route.ts';

/** Why the team acts; customers see it in the event unless the matter is legal. */
const reason = text({ max: 500 });

export const adminRoutes = defineRoutes({
  holdVideo: {
    method: 'post',
    path: '/admin/videos/{videoId}/hold',
    summary: 'Hold a video, or change the reason of the hold',
    tag: 'Admin',
    auth: ['admin'],
    body: z.strictObject({ reason: reason.optional(), legal: z.boolean().default(false) }),
    response: { status: 200, body: video, description: 'The video as it is now.' },
    errors: ['invalid_video_state'],
  },
  liftVideo: {
    method: 'delete',
    path: '/admin/videos/{videoId}/hold',
    summary: 'Lift the team’s hold; answers 200 also when nothing was held',
    tag: 'Admin',
    auth: ['admin'],
    response: { status: 200, body: video, description: 'The video as it is now.' },
  },
  removeVideo: {
    method: 'delete',
    path: '/admin/videos/{videoId}',
    summary: 'Remove a video',
    tag: 'Admin',
    auth: ['admin'],
    query: z.object({
      reason: reason.optional(),
      legal: z
        .enum(['true', 'false'])
        .default('false')
        .transform((word) => word === 'true'),
    }),
    response: { status: 204, description: 'The video is gone.' },
  },
  retryEncodeJob: {
    method: 'post',
    path: '/admin/encode-jobs/{jobId}/retry',
    summary: 'Encode the failed video of a job again',
    tag: 'Admin',
    auth: ['admin'],
    response: { status: 200, body: video, description: 'The video, `processing` again.' },
    errors: ['invalid_video_state'],
  },
});
