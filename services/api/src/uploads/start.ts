import { type BodyOf, ProblemError, type Routes, type Upload } from '@millrace/contract';
import { newId, partLayout, titleOf } from '@millrace/domain';
import { reachPhase } from '@millrace/platform';
import {
  findVideo,
  insertUpload,
  isUniqueViolation,
  newPrefix,
  type NewUpload,
  type Plan,
  type Transaction,
  videoResource,
} from '@millrace/store';
import { type FeatureDeps } from '../deps.ts';
import { assertFileSize } from './file-size.ts';
import { presignParts } from './parts.ts';

export interface StartInput {
  accountId: string;
  projectId: string;
  plan: Plan;
  body: BodyOf<Routes['startUpload']>;
  /** The upload token that is spent, and the title that it gives. */
  token?: NonNullable<NewUpload['token']> & { title: string | null };
}

/** A started upload without its part URLs, and what is needed to sign them, now or again. */
export interface StartedUpload {
  first: Omit<Upload, 'parts'>;
  objectKey: string;
  storeUploadId: string;
  partCount: number;
}

/**
 * Starts an upload: creates it in the store, then records it. A crash in between leaves an upload in the store
 * that no row names; the reconciler's sweep aborts it.
 *
 * @param keep called in the transaction that makes the upload final
 * @throws ProblemError `plan_limit_reached`, `not_found` when the project is gone
 * @throws TokenSpentError when the token was spent meanwhile
 */
export async function startUpload(
  { store, objects, logger }: FeatureDeps,
  input: StartInput,
  keep: (tx: Transaction, started: StartedUpload) => Promise<void>,
): Promise<StartedUpload> {
  assertFileSize(input.plan, 'sizeBytes', input.body.sizeBytes);
  const upload = await createInStore(objects, input);
  const { objectKey, storeUploadId, partCount, partSizeBytes } = upload;
  reachPhase('upload.created', () => ({ objectKey }));
  try {
    return await store.transaction(async (tx) => {
      const { id, expiresAt } = await insertUpload(tx, upload);
      const video = await findVideo(tx, upload.projectId, upload.videoId);
      if (!video) throw new Error(`video ${upload.videoId} was not inserted`);
      const first = {
        id,
        video: videoResource(video),
        partSizeBytes,
        expiresAt: expiresAt.toISOString(),
      };
      const started = { first, objectKey, storeUploadId, partCount };
      await keep(tx, started);
      return started;
    });
  } catch (error) {
    // Only after a certain refusal: when the commit's answer was lost, the upload may well be on record.
    const spent = isUniqueViolation(error, 'uploads_token');
    if (error instanceof ProblemError || spent) {
      await objects.abort({ key: objectKey, uploadId: storeUploadId }).catch((failure: unknown) => {
        logger.warn({ err: failure, key: objectKey }, 'refused upload left to the sweep');
      });
    }
    throw spent ? new TokenSpentError(error) : error;
  }
}

/** Another call spent the upload token first. */
export class TokenSpentError extends Error {
  override readonly name = 'TokenSpentError';
  constructor(cause: unknown) {
    super('the upload token was spent by another call', { cause });
  }
}

/** The answer of the start route. */
export async function uploadResource(
  { objects }: Pick<FeatureDeps, 'objects'>,
  started: StartedUpload,
): Promise<Upload> {
  const parts = await presignParts(objects, started, new Date(started.first.expiresAt));
  return { ...started.first, parts };
}

async function createInStore(objects: FeatureDeps['objects'], input: StartInput): Promise<NewUpload> {
  const { accountId, projectId, body, token } = input;
  const videoId = newId('vid');
  const prefix = newPrefix(videoId);
  const objectKey = `${prefix}source`;
  return {
    id: newId('upl'),
    videoId,
    projectId,
    accountId,
    title: token?.title ?? titleOf(body),
    token: token ?? null,
    fileName: body.fileName ?? null,
    declaredBytes: body.sizeBytes,
    contentType: body.contentType,
    prefix,
    objectKey,
    storeUploadId: await objects.createUpload(objectKey),
    ...partLayout(body.sizeBytes),
  };
}
