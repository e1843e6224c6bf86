import { demoPlayback } from '../resources.ts';
import { defineRoutes } from './route.ts';

export const demoRoutes = defineRoutes({
  getDemoPlayback: {
    method: 'get',
    path: '/v1/demo/playback',
    summary: 'A playback token for the demo video',
    description: 'Video and domain are the operator’s choice. 30 requests a minute for each client address.',
    tag: 'Playback',
    auth: [],
    cors: 'any',
    response: { status: 200, body: demoPlayback, description: 'A token for ten minutes.' },
    errors: ['not_configured'],
  },
});
