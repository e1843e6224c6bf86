import { z } from 'zod';
import { ingestReport, video, videoStatuses } from '../resources.ts';
import { looseText, text } from '../text.ts';
import { defineRoutes, pageOf, pageQuery } from './route.ts';

const instant = z.iso.datetime({ offset: true });

export const videoRoutes = defineRoutes({
  getVideo: {
    method: 'get',
    path: '/v1/projects/{projectId}/videos/{videoId}',
    summary: 'Get a video',
    tag: 'Videos',
    auth: ['key', 'session'],
    keyScope: 'playback',
    cors: 'dashboard',
    hot: true,
    finds: 'video',
    response: { status: 200, body: video, description: 'The video.' },
  },
  listVideos: {
    method: 'get',
    path: '/v1/projects/{projectId}/videos',
    summary: 'List the videos of a project, newest first',
    tag: 'Videos',
    auth: ['key', 'session'],
    cors: 'dashboard',
    query: z
      .object({
        ...pageQuery,
        status: z.enum(videoStatuses).optional(),
        q: looseText({ max: 200 }).optional().meta({ description: 'Part of the title, in any case.' }),
        createdFrom: instant.optional().meta({ description: 'Created then or later.' }),
        createdTo: instant.optional().meta({ description: 'Created before then.' }),
      })
      .refine(({ createdFrom, createdTo }) => !isAfter(createdFrom, createdTo), {
        path: ['createdFrom'],
        error: 'is after createdTo',
      }),
    response: { status: 200, body: pageOf(video), description: 'One page of videos.' },
  },
  updateVideo: {
    method: 'patch',
    path: '/v1/projects/{projectId}/videos/{videoId}',
    summary: 'Change a video',
    tag: 'Videos',
    auth: ['key', 'session'],
    cors: 'dashboard',
    body: z.strictObject({
      title: text({ max: 200 }).optional(),
      posterAtSeconds: z.number().min(0).nullable().optional().meta({
        description:
          'The moment that the poster shows, within the video; null: chosen for you. Of a video that plays, the poster is made anew within moments; the ingest report says what became of it.',
      }),
    }),
    response: { status: 200, body: video, description: 'The video as it is now.' },
  },
  deleteVideo: {
    method: 'delete',
    path: '/v1/projects/{projectId}/videos/{videoId}',
    summary: 'Delete a video; playback stops within about a minute',
    tag: 'Videos',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 204, description: 'The video is gone.' },
  },
  getIngestReport: {
    method: 'get',
    path: '/v1/projects/{projectId}/videos/{videoId}/ingest-report',
    summary: 'What was found in the file, what was converted and why',
    tag: 'Videos',
    auth: ['key', 'session'],
    cors: 'dashboard',
    response: { status: 200, body: ingestReport, description: 'The report of the latest encode.' },
  },
});

const isAfter = (from: string | undefined, to: string | undefined): boolean =>
  from !== undefined && to !== undefined && Date.parse(from) > Date.parse(to);
