import { playbackStateResponse } from '../internal.ts';
import { defineRoutes } from './route.ts';

export const internalRoutes = defineRoutes({
  getPlaybackState: {
    method: 'get',
    path: '/internal/playback-state/{videoId}',
    summary: 'What the CDN needs to decide about a video, with its version',
    tag: 'Internal',
    auth: ['internal'],
    response: { status: 200, body: playbackStateResponse, description: 'The states, of one moment.' },
  },
});
