import { captions } from '../resources.ts';
import { defineRoutes, listOf } from './route.ts';

const place = {
  path: '/v1/projects/{projectId}/videos/{videoId}/captions/{language}',
  tag: 'Captions',
  auth: ['key', 'session'],
  cors: 'dashboard',
} as const;

export const captionsRoutes = defineRoutes({
  listCaptions: {
    ...place,
    method: 'get',
    path: '/v1/projects/{projectId}/videos/{videoId}/captions',
    summary: 'List the languages that a video has captions in',
    response: { status: 200, body: listOf(captions), description: 'By language.' },
  },
  putCaptions: {
    ...place,
    method: 'put',
    summary: 'Set the captions of a video in one language',
    description:
      'The body is the file itself, WebVTT or SRT (its first line tells which, not the content type), in UTF-8, of at most 1 MiB. It replaces the captions that the language had. Players are offered it as WebVTT: cues sorted by their begin, with the tags of WebVTT (`c`, `i`, `b`, `u`, `ruby`, `rt`, `v`, `lang`); comments, styles and regions are left out, another tag, a negative time or a cue that ends before it begins is `400` and names the line. Works in every status but `failed`, also before the video is encoded, and raises its `updatedAt`; viewers see it within about a minute. A video has captions in 50 languages at most.',
    rawBody: {
      maxBytes: 1024 * 1024,
      description: 'A WebVTT or SRT file.',
      example: 'WEBVTT\n\n00:00:01.000 --> 00:00:03.000\nHello.\n',
    },
    response: { status: 200, body: captions, description: 'The captions as they are now.' },
    errors: ['plan_limit_reached', 'invalid_video_state'],
  },
  deleteCaptions: {
    ...place,
    method: 'delete',
    summary: 'Take the captions of a language away',
    description: 'Works in every status, and raises the `updatedAt` of the video.',
    response: { status: 204, description: 'The language has no captions.' },
  },
});
