import { type Failure, ProblemError } from '@millrace/contract';
import {
  checkJoined,
  decideUpload,
  largestUploadBytes,
  type NamedPart,
  randomSegment,
} from '@millrace/domain';
import { reachPhase } from '@millrace/platform';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { createEncodeJob } from './encode-jobs.ts';
import { planOfAccount } from './plans.ts';
import { lockUpload, type UploadRow } from './uploads.ts';
import { moveVideo } from './video-moves.ts';
import { lockVideo, type VideoRow } from './videos.ts';

/**
 * Joining the parts is not atomic with the record (design, rule 10). So the record first says that it is being
 * done, with which parts, and until when to wait for it (`completing`); then the store joins them; then the
 * outcome is recorded. Whoever finds the wait over, a retried call or the reconciler, does the same again: the
 * store refuses to join twice, and a look at the object tells whether the first time worked.
 */

/** What joining needs of the object store; `ObjectStore` of @millrace/objects has it. */
interface PartJoiner {
  complete(input: {
    key: string;
    uploadId: string;
    parts: readonly NamedPart[];
  }): Promise<{ etag: string; sizeBytes: number }>;
  head(key: string): Promise<{ etag: string; sizeBytes: number; opaqueEtag?: true } | null>;
}

/** What is to be joined. */
interface Joining {
  parts: readonly NamedPart[];
  /** Of all parts together. */
  sizeBytes: number;
}

/** One attempt at completing an upload; it may record its outcome as long as no other has taken over. */
interface Completion extends Joining {
  upload: UploadRow;
  attempt: string;
}

export type CompletionOutcome =
  | { kind: 'accepted'; video: VideoRow }
  /** The real size is over a limit: the video is `failed`. */
  | { kind: 'over_limit'; message: string }
  /** The store holds other parts than were named: the upload is open again. */
  | { kind: 'parts_changed'; message: string }
  /** The store has neither the parts nor an object made of them: the video is `failed`. */
  | { kind: 'lost' }
  /** The video was deleted meanwhile, or another attempt took over. */
  | { kind: 'superseded' };

export type CompletionStart =
  | { kind: 'begun'; completion: Completion }
  /** Somebody is at it. */
  | { kind: 'wait' }
  | { kind: 'closed' };

const leaseSeconds = 30;
const renewEveryMs = 10_000;
/** Past that nobody waits for the store any more, and others may try. */
const longestJoinMs = 600_000;

/** Begins to complete an open upload with parts that were found right. */
export async function beginCompletion(
  tx: Transaction,
  uploadId: string,
  joining: Joining,
): Promise<CompletionStart> {
  const upload = await lockUpload(tx, uploadId);
  if (!upload) return { kind: 'closed' };
  const decision = decideUpload(upload, 'complete_started');
  return decision.kind === 'move' ? { kind: 'begun', completion: await take(tx, upload, joining) } : decision;
}

/** Takes a completion over whose lease has run out, with the parts that it began with. */
export async function resumeCompletion(tx: Transaction, uploadId: string): Promise<CompletionStart> {
  const upload = await lockUpload(tx, uploadId);
  if (!upload) return { kind: 'closed' };
  const decision = decideUpload(upload, 'complete_resumed');
  if (decision.kind !== 'move') return decision;
  const { rows } = await tx.query<{ joining: Partial<Joining> | null }>(
    `select completing_parts as joining from uploads where id = $1`,
    [uploadId],
    'completion-parts',
  );
  const { parts = [], sizeBytes = 0 } = rows[0]?.joining ?? {};
  return { kind: 'begun', completion: await take(tx, upload, { parts, sizeBytes }) };
}

async function take(tx: Transaction, upload: UploadRow, { parts, sizeBytes }: Joining): Promise<Completion> {
  const attempt = randomSegment();
  await tx.query(
    `update uploads set state = 'completing', completing_parts = $2,
       completing_until = clock_timestamp() + make_interval(secs => $3)
     where id = $1`,
    [upload.id, JSON.stringify({ attempt, parts, sizeBytes }), leaseSeconds],
    'completion-take',
  );
  return { upload, attempt, parts, sizeBytes };
}

/** Uploads whose completion nobody waits for any more, for the reconciler. */
export async function abandonedCompletions(db: Queryable, limit = 100): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from uploads where state = 'completing' and completing_until <= clock_timestamp()
     order by completing_until limit $1`,
    [limit],
    'completions-abandoned',
  );
  return rows.map((row) => row.id);
}

/**
 * Finds out what became of an abandoned completion and records it. Null when there was nothing to do.
 * @throws what the store throws when it cannot be reached: then it is abandoned again
 */
export async function resolveCompleting(
  db: Database,
  joiner: PartJoiner,
  uploadId: string,
  headers: Record<string, string> = {},
): Promise<CompletionOutcome | null> {
  const start = await db.transaction((tx) => resumeCompletion(tx, uploadId));
  return start.kind === 'begun' ? finishCompletion(db, joiner, start.completion, headers) : null;
}

/**
 * Has the store join the parts and records the outcome, renewing the lease meanwhile.
 *
 * @param headers trace context for the encode and its messages
 * @throws what the store throws when it cannot be reached: the outcome is unknown, and the next to ask finds out
 */
export async function finishCompletion(
  db: Database,
  joiner: PartJoiner,
  completion: Completion,
  headers: Record<string, string> = {},
): Promise<CompletionOutcome> {
  const joined = await whileLeased(db, completion, () => joinParts(joiner, completion));
  reachPhase('upload.joined', () => ({ uploadId: completion.upload.id, outcome: joined.kind }));
  return db.transaction(async (tx) => {
    const upload = await lockUpload(tx, completion.upload.id);
    if (!upload || !(await holds(tx, completion))) return { kind: 'superseded' };
    switch (joined.kind) {
      case 'joined':
        return record(tx, upload, joined.sizeBytes, headers);
      case 'refused':
        await close(tx, upload, 'complete_undone');
        return { kind: 'parts_changed', message: joined.message };
      case 'lost':
        await close(tx, upload, 'complete_rejected');
        await moveVideo(tx, upload.videoId, { type: 'complete_rejected', failure: lostFailure }, { headers });
        return { kind: 'lost' };
    }
  });
}

type Joined = { kind: 'joined'; sizeBytes: number } | { kind: 'refused'; message: string } | { kind: 'lost' };

async function joinParts(joiner: PartJoiner, completion: Completion): Promise<Joined> {
  const { upload, parts } = completion;
  const named = parts.map(({ partNumber, etag }) => ({ partNumber, etag }));
  try {
    const { sizeBytes } = await joiner.complete({
      key: upload.objectKey,
      uploadId: upload.storeUploadId,
      parts: named,
    });
    return { kind: 'joined', sizeBytes };
  } catch (error) {
    switch (codeOf(error)) {
      case 'invalid_part':
      case 'invalid_part_order':
      case 'part_too_small':
        return { kind: 'refused', message: (error as Error).message };
      case 'no_such_upload':
        return findJoined(joiner, completion);
      default:
        throw error;
    }
  }
}

/** The upload is gone from the store: either its parts were joined before and the answer was lost, or it is lost. */
async function findJoined(joiner: PartJoiner, { upload, parts, sizeBytes }: Completion): Promise<Joined> {
  const object = await joiner.head(upload.objectKey);
  if (object?.sizeBytes !== sizeBytes) return { kind: 'lost' };
  return checkJoined(parts, object).ok ? { kind: 'joined', sizeBytes } : { kind: 'lost' };
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;

/** Renews the lease while `work` runs; gives it back at once when the store says that it is not there. */
async function whileLeased<T>(db: Database, completion: Completion, work: () => Promise<T>): Promise<T> {
  const lease = (seconds: number): Promise<unknown> =>
    db.query(
      `update uploads set completing_until = clock_timestamp() + make_interval(secs => $3)
       where id = $1 and state = 'completing' and completing_parts ->> 'attempt' = $2`,
      [completion.upload.id, completion.attempt, seconds],
      'completion-lease',
    );
  const startedAt = performance.now();
  const timer = setInterval(() => {
    // A renewal that fails costs at most that somebody else joins the same parts again.
    if (performance.now() - startedAt < longestJoinMs) lease(leaseSeconds).catch(() => undefined);
  }, renewEveryMs);
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === 'unavailable') await lease(0).catch(() => undefined);
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/** True while this attempt has not been taken over; under the upload's lock. */
async function holds(tx: Transaction, { upload, attempt }: Completion): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from uploads where id = $1 and state = 'completing' and completing_parts ->> 'attempt' = $2`,
    [upload.id, attempt],
    'completion-holds',
  );
  return rowCount > 0;
}

/** The parts are one object of `sizeBytes`: checks the real size and starts the encode. */
async function record(
  tx: Transaction,
  upload: UploadRow,
  sizeBytes: number,
  headers: Record<string, string>,
): Promise<CompletionOutcome> {
  const { videoId, accountId } = upload;
  const message = await overLimit(tx, upload, sizeBytes);
  if (message !== null) {
    await close(tx, upload, 'complete_rejected');
    const failure: Failure = { code: 'plan_limit_reached', message };
    const changes = { sizeBytes };
    await moveVideo(tx, videoId, { type: 'complete_rejected', failure }, { changes, headers });
    return { kind: 'over_limit', message };
  }
  await close(tx, upload, 'complete_accepted');
  await lockVideo(tx, videoId);
  await createEncodeJob(tx, { videoId, accountId, headers });
  const changes = { sizeBytes };
  const { video } = await moveVideo(tx, videoId, { type: 'complete_accepted' }, { changes, headers });
  return { kind: 'accepted', video };
}

/** Why the real size is too much, or null. */
async function overLimit(tx: Transaction, upload: UploadRow, sizeBytes: number): Promise<string | null> {
  const plan = await planOfAccount(tx, upload.accountId);
  const mostBytes = Math.min(plan.maxFileBytes, upload.maxBytes ?? Infinity, largestUploadBytes);
  if (sizeBytes <= mostBytes) return null;
  return `The file has ${sizeBytes} bytes; on the plan ${plan.name} this upload may have ${mostBytes}. It was removed: upload a smaller one.`;
}

const lostFailure: Failure = {
  code: 'encoding_failed',
  message: 'The uploaded parts are no longer in storage. Upload the file again.',
};

/** Moves an upload out of `completing`. */
async function close(
  tx: Transaction,
  upload: UploadRow,
  trigger: 'complete_undone' | 'complete_accepted' | 'complete_rejected',
): Promise<void> {
  const decision = decideUpload(upload, trigger);
  if (decision.kind !== 'move') throw new ProblemError('upload_closed');
  await tx.query(
    `update uploads set state = $2, completing_parts = null, completing_until = null,
       closed_at = case when $2 <> 'open' then clock_timestamp() end
     where id = $1`,
    [upload.id, decision.to],
    'completion-close',
  );
}
