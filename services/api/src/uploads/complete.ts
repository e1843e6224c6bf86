import { type FieldError, ProblemError, type Video } from '@millrace/contract';
import { areSameParts, checkJoined, checkParts, type NamedPart } from '@millrace/domain';
import { currentTraceHeaders } from '@millrace/platform';
import {
  beginCompletion,
  type CompletionOutcome,
  type CompletionStart,
  findUpload,
  finishCompletion,
  resumeCompletion,
  type UploadRow,
  videoResource,
} from '@millrace/store';
import { type FeatureDeps } from '../deps.ts';
import { listHeldParts } from './parts.ts';

export interface CompleteInput {
  projectId: string;
  uploadId: string;
  parts: readonly NamedPart[];
  /** Ends the wait for another call's outcome. */
  signal: AbortSignal;
}

/** How long a call waits for what becomes of another one: longer than a lost process's lease. */
const waitMs = 40_000;
const pollMs = 100;

/**
 * Completes an upload: the named parts become one object and its encode begins. Of calls at the same time one
 * succeeds; the others wait for its outcome, and go on themselves when it failed or its process was lost.
 *
 * @throws ProblemError `not_found`, `upload_closed`, `invalid_parts` (the upload stays open),
 *   `plan_limit_reached` (the video is `failed`), `service_unavailable` when another call takes too long
 */
export async function completeUpload(deps: FeatureDeps, input: CompleteInput): Promise<Video> {
  const until = deps.clock.now().getTime() + waitMs;
  for (;;) {
    const upload = await findUpload(deps.store, input.projectId, input.uploadId);
    if (!upload) throw new ProblemError('not_found');
    const start = await startOrResume(deps, upload, input.parts);
    if (start.kind === 'closed') throw new ProblemError('upload_closed');
    if (start.kind === 'begun') {
      const headers = currentTraceHeaders();
      const outcome = await finishCompletion(deps.store, deps.objects, start.completion, headers);
      // Of a completion that another call began with other parts, this call is not the winner.
      const ours = areSameParts(input.parts, start.completion.parts);
      const video = videoOf(outcome, ours);
      if (video !== null) return video;
    } else {
      if (deps.clock.now().getTime() >= until) {
        const detail = 'Another call is completing this upload.';
        throw new ProblemError('service_unavailable', { retryAfter: 5, detail });
      }
      await deps.clock.sleep(pollMs, input.signal);
    }
  }
}

async function startOrResume(
  { store, objects }: FeatureDeps,
  upload: UploadRow,
  named: readonly NamedPart[],
): Promise<CompletionStart> {
  if (upload.state === 'completing') {
    return upload.leased ? { kind: 'wait' } : store.transaction((tx) => resumeCompletion(tx, upload.id));
  }
  if (upload.state !== 'open' || upload.overdue) return { kind: 'closed' };
  const held = await listHeldParts(objects, upload);
  if (held === null) return startJoined({ store, objects }, upload, named);
  const verdict = checkParts(named, held);
  if (!verdict.ok) throw invalidParts(verdict.errors);
  return store.transaction((tx) => beginCompletion(tx, upload.id, verdict));
}

/**
 * The store no longer knows the upload: its parts were joined, by a call at this moment or by one that a restored
 * record has not heard of; or they are lost.
 */
async function startJoined(
  { store, objects }: Pick<FeatureDeps, 'store' | 'objects'>,
  upload: UploadRow,
  named: readonly NamedPart[],
): Promise<CompletionStart> {
  const object = await objects.head(upload.objectKey);
  const verdict =
    object === null ? { ok: true as const, parts: [], sizeBytes: 0 } : checkJoined(named, object);
  if (verdict.ok) return store.transaction((tx) => beginCompletion(tx, upload.id, verdict));
  const now = await findUpload(store, upload.projectId, upload.id);
  if (now?.state !== 'open') return { kind: 'wait' };
  throw invalidParts(verdict.errors);
}

function invalidParts(errors: FieldError[]): ProblemError {
  const told = errors.slice(0, 3).map(({ path, message }) => `${path}: ${message}`);
  return new ProblemError('invalid_parts', { detail: `${told.join('; ')}.`, errors });
}

/** The answer, or null when the upload must be looked at again. */
function videoOf(outcome: CompletionOutcome, ours: boolean): Video | null {
  switch (outcome.kind) {
    case 'accepted':
      if (!ours) throw new ProblemError('upload_closed');
      return videoResource(outcome.video);
    case 'over_limit':
      throw new ProblemError('plan_limit_reached', { detail: outcome.message });
    case 'parts_changed':
      if (!ours) return null;
      throw new ProblemError('invalid_parts', {
        detail: 'The parts were changed while they were joined; name them as they are now.',
        errors: [{ path: 'parts', message: 'are not what is stored now' }],
      });
    case 'lost':
      throw new ProblemError('upload_closed', { detail: 'The parts are no longer in storage.' });
    case 'superseded':
      return null;
  }
}
