import { ProblemError, type ResumedUpload } from '@millrace/contract';
import {
  cancelUpload,
  extendUpload,
  findUpload,
  findVideo,
  type UploadRow,
  videoResource,
} from '@millrace/store';
import { type ApiHandlers } from '../calls.ts';
import { type FeatureDeps } from '../deps.ts';
import { idempotently } from '../idempotency.ts';
import { completeUpload } from './complete.ts';
import { listHeldParts, presignParts } from './parts.ts';
import { type StartedUpload, startUpload, uploadResource } from './start.ts';
import { startWithToken } from './start-with-token.ts';

type UploadHandlers = Pick<ApiHandlers, 'startUpload' | 'getUpload' | 'completeUpload' | 'cancelUpload'>;

export const uploadHandlers = (deps: FeatureDeps): UploadHandlers => ({
  startUpload: ({ caller, project, plan, body, ...call }) => {
    const { accountId } = caller;
    const input = { accountId, projectId: project.id, plan, body };
    if (caller.kind === 'upload_token')
      return startWithToken(deps, { ...input, claims: caller.claims, call });
    return idempotently(
      deps,
      { accountId, call: { ...call, method: 'POST' }, status: 201 },
      {
        run: async (keep) => uploadResource(deps, await startUpload(deps, input, keep)),
        replay: (started: StartedUpload) => uploadResource(deps, started),
      },
    );
  },

  getUpload: async ({ project, params }) => resumeUpload(deps, project.id, params.uploadId),

  completeUpload: ({ project, params, body, signal }) =>
    completeUpload(deps, { projectId: project.id, uploadId: params.uploadId, parts: body.parts, signal }),

  cancelUpload: async ({ project, params, log }) => {
    await mustFind(deps, project.id, params.uploadId);
    const { upload, removable } = await deps.store.transaction((tx) => cancelUpload(tx, params.uploadId));
    if (!removable) return undefined;
    // The upload is cancelled by now; what the store cannot drop at once the sweep of its prefix will.
    await deps.objects
      .abort({ key: upload.objectKey, uploadId: upload.storeUploadId })
      .catch((error: unknown) => log.warn({ err: error }, 'cancelled upload left to the sweep'));
    return undefined;
  },
});

/** An open upload with fresh part URLs, what is held of it, and a later end. */
async function resumeUpload(deps: FeatureDeps, projectId: string, uploadId: string): Promise<ResumedUpload> {
  await mustFind(deps, projectId, uploadId);
  const upload = await extendUpload(deps.store, uploadId);
  if (!upload) throw new ProblemError('upload_closed');
  const held = await listHeldParts(deps.objects, upload);
  const video = await findVideo(deps.store, projectId, upload.videoId);
  // Closed since it was extended.
  if (held === null || !video) throw new ProblemError('upload_closed');
  return {
    id: upload.id,
    video: videoResource(video),
    partSizeBytes: upload.partSizeBytes,
    parts: await presignParts(deps.objects, upload, upload.expiresAt),
    expiresAt: upload.expiresAt.toISOString(),
    uploadedParts: held.map(({ partNumber, etag, sizeBytes }) => ({ partNumber, etag, sizeBytes })),
  };
}

async function mustFind({ store }: FeatureDeps, projectId: string, uploadId: string): Promise<UploadRow> {
  const upload = await findUpload(store, projectId, uploadId);
  if (!upload) throw new ProblemError('not_found');
  return upload;
}
