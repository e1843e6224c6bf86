import { fieldProblem, ProblemError, type Upload } from '@millrace/contract';
import { type UploadClaims } from '@millrace/domain';
import { findUploadOfToken, findVideo, type UploadRow, videoResource } from '@millrace/store';
import { type FeatureDeps } from '../deps.ts';
import { hashOfJson, type IdempotentCall, idempotencyKeyOf } from '../idempotency.ts';
import { presignParts } from './parts.ts';
import { type StartInput, startUpload, TokenSpentError, uploadResource } from './start.ts';

type TokenCall = Pick<IdempotentCall, 'headers' | 'json' | 'setHeader'>;

/**
 * Starts the one upload of an upload token. The first success spends it; the same body again gets the same
 * upload while that is open (contract UPT-215 to UPT-218). The token itself is what tells repeats: an
 * `Idempotency-Key` that another browser sent as well must not lead to that one's upload (contract UPT-229).
 *
 * @throws ProblemError `unauthorized` when it was spent with another body, `upload_closed`, `invalid_request`
 *   for a content type or an `Idempotency-Key` and `plan_limit_reached` for a size that the token does not allow,
 *   and what `startUpload` throws
 */
export async function startWithToken(
  deps: FeatureDeps,
  { claims, call, ...input }: StartInput & { claims: UploadClaims; call: TokenCall },
): Promise<Upload> {
  const { tokenId, maxSizeBytes: maxBytes, contentType, title } = claims;
  const bodyHash = hashOfJson(call.json);
  idempotencyKeyOf(call.headers);
  const again = async (): Promise<Upload | null> => {
    const upload = await findUploadOfToken(deps.store, tokenId);
    if (upload === null) return null;
    const same = await sameUpload(deps, upload, bodyHash);
    call.setHeader('Idempotency-Replayed', 'true');
    return same;
  };
  const earlier = await again();
  if (earlier !== null) return earlier;
  assertAllowed(claims, input.body);
  const token = { tokenId, bodyHash, maxBytes, contentType, title };
  try {
    return await uploadResource(deps, await startUpload(deps, { ...input, token }, () => Promise.resolve()));
  } catch (error) {
    const twin = error instanceof TokenSpentError ? await again() : null;
    if (twin === null) throw error;
    return twin;
  }
}

async function sameUpload(deps: FeatureDeps, upload: UploadRow, bodyHash: Buffer): Promise<Upload> {
  if (upload.tokenBodyHash?.equals(bodyHash) !== true) throw new ProblemError('unauthorized');
  const { id, projectId, videoId, partSizeBytes, expiresAt } = upload;
  const video = await findVideo(deps.store, projectId, videoId);
  if (upload.state !== 'open' || upload.overdue || video === null) throw new ProblemError('upload_closed');
  return {
    ...{ id, video: videoResource(video), partSizeBytes, expiresAt: expiresAt.toISOString() },
    parts: await presignParts(deps.objects, upload, expiresAt),
  };
}

function assertAllowed(
  { maxSizeBytes, contentType }: UploadClaims,
  body: Pick<StartInput['body'], 'sizeBytes' | 'contentType'>,
): void {
  if (contentType !== null && body.contentType !== contentType) {
    throw fieldProblem('invalid_request', 'contentType', `must be ${contentType}, as the upload token says`);
  }
  if (body.sizeBytes <= maxSizeBytes) return;
  const message = `is over the ${maxSizeBytes} bytes that the upload token allows`;
  throw fieldProblem('plan_limit_reached', 'sizeBytes', message);
}
