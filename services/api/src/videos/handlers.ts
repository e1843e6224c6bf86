import { fieldProblem, ProblemError } from '@millrace/contract';
import {
  findIngestReport,
  findVideo,
  listVideos,
  lockVideo,
  moveVideo,
  patchVideo,
  type VideoPatch,
  videoResource,
  type VideoRow,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { readPage } from '../paging.ts';

type VideoHandlers = Pick<
  ApiHandlers,
  'getVideo' | 'listVideos' | 'updateVideo' | 'deleteVideo' | 'getIngestReport'
>;

export const videoHandlers = (deps: FeatureDeps): VideoHandlers => ({
  // Not `async`: nothing is waited for, and what it throws is answered all the same.
  getVideo: ({ video }) => Promise.resolve(videoResource(found(video))),

  listVideos: ({ project, query }) => {
    const { limit, cursor, status, q, createdFrom, createdTo } = query;
    const instant = (text: string | undefined): Date | undefined =>
      text === undefined ? undefined : new Date(text);
    return readPage(deps.config.CURSOR_KEYS, {
      scope: {
        operationId: 'listVideos',
        owner: project.id,
        filters: { status, q, createdFrom, createdTo },
      },
      query: { limit, cursor },
      read: (limit, after) =>
        listVideos(
          deps.store,
          project.id,
          { status, q, createdFrom: instant(createdFrom), createdTo: instant(createdTo) },
          { limit, after },
        ),
      toResource: videoResource,
    });
  },

  updateVideo: async ({ project, params, body }) =>
    videoResource(await updateVideo(deps, project.id, params.videoId, body)),

  deleteVideo: async ({ project, params }) => {
    await deps.store.transaction(async (tx) => {
      found(await findVideo(tx, project.id, params.videoId));
      await moveVideo(tx, params.videoId, { type: 'customer_delete' }, { deletedBy: 'customer' });
    });
    return undefined;
  },

  getIngestReport: async ({ project, params }) =>
    found(await findIngestReport(deps.store, project.id, params.videoId)),
});

/** A change of nothing leaves `updatedAt` alone. */
const updateVideo = (
  { store }: FeatureDeps,
  projectId: string,
  videoId: string,
  patch: VideoPatch,
): Promise<VideoRow> =>
  store.transaction(async (tx) => {
    const video = await lockVideo(tx, videoId);
    if (video?.projectId !== projectId || video.deletedAt !== null) throw new ProblemError('not_found');
    const { title, posterAtSeconds } = patch;
    if (title === undefined && posterAtSeconds === undefined) return video;
    assertWithin(video, posterAtSeconds ?? 0);
    return patchVideo(tx, video, patch);
  });

function assertWithin({ durationMs }: VideoRow, atSeconds: number): void {
  if (durationMs === null || atSeconds * 1000 <= durationMs) return;
  const message = `is past the end of the video, ${durationMs / 1000} s`;
  throw fieldProblem('invalid_request', 'posterAtSeconds', message);
}

function found<T>(row: T | null): T {
  if (row === null) throw new ProblemError('not_found');
  return row;
}
