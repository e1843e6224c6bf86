import { cdnProcessNote, playbackStateResponse } from '../internal.ts';
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
  noteCdnProcess: {
    method: 'put',
    path: '/internal/cdn-processes/{bootId}',
    summary: 'A process of the CDN is there',
    description: 'So that no hold counts as effective before it is known to this process too.',
    tag: 'Internal',
    auth: ['internal'],
    body: cdnProcessNote,
    response: { status: 200, body: cdnProcessNote, description: 'The record knows of the process.' },
  },
});
