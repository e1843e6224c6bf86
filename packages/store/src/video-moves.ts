import {
  type EventType,
  type Failure,
  type FailureCode,
  ProblemError,
  type Quality,
  topics,
  type VideoStatus,
} from '@millrace/contract';
import { type ActiveHold, decideVideo, newId, type VideoTrigger } from '@millrace/domain';
import { type Queryable, type Transaction } from './db.ts';
import { underLegalHold } from './legal-holds.ts';
import { addToOutbox, videoStateMessage } from './outbox.ts';
import { releaseReservations } from './reservations.ts';
import { lockVideo, risingUpdatedAt, videoPlaybackStateOf, videoResource, type VideoRow } from './videos.ts';

/** Columns that a move may set beside the status. */
export interface VideoChanges {
  sizeBytes?: number;
  durationMs?: number;
  qualities?: readonly Quality[];
  indexKey?: string;
  currentJobId?: string;
}

export interface MoveOptions {
  changes?: VideoChanges;
  /** Who ends the video, when the move deletes it. */
  deletedBy?: 'customer' | 'team' | 'cancel' | 'expiry' | 'erasure';
  /** Trace context for the messages of this move. */
  headers?: Record<string, string>;
}

export interface MoveResult {
  video: VideoRow;
  /** False when the machine decided that nothing changes. */
  moved: boolean;
}

/**
 * Makes one guarded move: locks the video, asks the state machine, and when it moves raises `version`, sets a
 * strictly rising `updatedAt`, frees what the old state held and writes the event and outbox rows — all in the
 * caller's transaction.
 *
 * @throws ProblemError `not_found` (unknown or deleted) or `invalid_video_state`
 */
export async function moveVideo(
  tx: Transaction,
  videoId: string,
  trigger: VideoTrigger,
  options: MoveOptions = {},
): Promise<MoveResult> {
  if (trigger.type === 'customer_delete' || trigger.type === 'team_removal') await lockUploadOf(tx, videoId);
  const before = await lockVideo(tx, videoId);
  if (!before) throw new ProblemError('not_found');
  const holds = await activeHolds(tx, videoId);
  const decision = decideVideo(
    { status: before.status, deleted: before.deletedAt !== null, failureCode: before.failureCode, holds },
    trigger,
  );
  if (decision.kind === 'refused') throw new ProblemError(decision.code, { detail: decision.message });
  if (decision.kind === 'stay') return { video: before, moved: false };

  const failure = 'failure' in trigger ? trigger.failure : null;
  const video = await writeMove(tx, before, decision.to, {
    ...options,
    failure,
    setsReadyAt: decision.setsReadyAt,
  });
  await settle(tx, video, decision.to, { failure, deletedBy: options.deletedBy });
  await announce(tx, video, decision.event, decision.reason, options.headers ?? {});
  return { video, moved: true };
}

/** Active holds of a video, oldest first. */
export async function activeHolds(db: Queryable, videoId: string): Promise<ActiveHold[]> {
  const { rows } = await db.query<ActiveHold>(
    'select legal, reason from video_holds where video_id = $1 and lifted_at is null order by placed_at, id',
    [videoId],
    'video-holds-active',
  );
  return rows;
}

async function writeMove(
  tx: Transaction,
  before: VideoRow,
  to: VideoStatus | 'deleted',
  {
    changes = {},
    deletedBy,
    failure,
    setsReadyAt,
  }: MoveOptions & { failure: Failure | null; setsReadyAt: boolean },
): Promise<VideoRow> {
  const deleted = to === 'deleted';
  const { rows } = await tx.query<{
    version: number;
    updatedAt: Date;
    readyAt: Date | null;
    deletedAt: Date | null;
  }>(
    `update videos set
       status = $2, version = version + 1,
       updated_at = ${risingUpdatedAt},
       failure_code = $3, failure_message = $4,
       size_bytes = coalesce($5, size_bytes), duration_ms = coalesce($6, duration_ms),
       qualities = coalesce($7, qualities), index_key = coalesce($8, index_key),
       current_job_id = coalesce($9, current_job_id),
       ready_at = case when $10 then date_trunc('milliseconds', clock_timestamp()) else ready_at end,
       deleted_at = case when $11 then date_trunc('milliseconds', clock_timestamp()) end, deleted_by = $12
     where id = $1
     returning version, updated_at as "updatedAt", ready_at as "readyAt", deleted_at as "deletedAt"`,
    [
      before.id,
      deleted ? before.status : to,
      deleted ? before.failureCode : (failure?.code ?? null),
      deleted ? before.failureMessage : (failure?.message ?? null),
      changes.sizeBytes ?? null,
      changes.durationMs ?? null,
      changes.qualities ?? null,
      changes.indexKey ?? null,
      changes.currentJobId ?? null,
      setsReadyAt,
      deleted,
      deleted ? (deletedBy ?? 'team') : null,
    ],
    'video-move',
  );
  const written = rows[0];
  if (!written) throw new Error(`video ${before.id} vanished under its lock`);
  return {
    ...before,
    ...written,
    status: deleted ? before.status : to,
    failureCode: deleted ? before.failureCode : (failure?.code ?? null),
    failureMessage: deleted ? before.failureMessage : (failure?.message ?? null),
    sizeBytes: changes.sizeBytes ?? before.sizeBytes,
    durationMs: changes.durationMs ?? before.durationMs,
    qualities: changes.qualities ? [...changes.qualities] : before.qualities,
    indexKey: changes.indexKey ?? before.indexKey,
    currentJobId: changes.currentJobId ?? before.currentJobId,
  };
}

/** Ends what the new state no longer needs: encoding work, reservations, objects. */
async function settle(
  tx: Transaction,
  video: VideoRow,
  to: VideoStatus | 'deleted',
  { failure, deletedBy }: { failure: Failure | null; deletedBy: MoveOptions['deletedBy'] },
): Promise<void> {
  if (to !== 'failed' && to !== 'deleted') return;
  await cancelEncoding(tx, video.id);
  await releaseReservations(tx, video.id, { refundUpload: failure?.code === 'encoding_failed' });
  if (to === 'deleted') {
    await closeUpload(tx, video.id, deletedBy);
    await doomObjects(tx, video.id);
  } else await doomObjects(tx, video.id, doomedByFailure(failure?.code ?? null));
}

/** A file over a limit is removed; of others the original stays, for a retry by the team. */
export const doomedByFailure = (code: FailureCode | null): 'all' | 'attempts' =>
  code === 'plan_limit_reached' ? 'all' : 'attempts';

/** An upload that may have to be closed is locked before its video, as whoever completes or cancels it does. */
async function lockUploadOf(tx: Transaction, videoId: string): Promise<void> {
  await tx.query(
    `select from uploads where video_id = $1 and state in ('open', 'completing') for update`,
    [videoId],
    'video-lock-upload',
  );
}

/** An unfinished upload ends with its video; the sweep of its prefix aborts it in the store. */
async function closeUpload(
  tx: Transaction,
  videoId: string,
  deletedBy: MoveOptions['deletedBy'],
): Promise<void> {
  await tx.query(
    `update uploads set state = $2, closed_at = clock_timestamp(), completing_until = null
     where video_id = $1 and state in ('open', 'completing')`,
    [videoId, deletedBy === 'expiry' ? 'expired' : 'cancelled'],
    'video-close-upload',
  );
}

/**
 * Cancels the video's running job and its tasks; workers learn of it at their next heartbeat. The job's lock
 * comes before its tasks', as everywhere.
 */
async function cancelEncoding(tx: Transaction, videoId: string): Promise<void> {
  await tx.query(
    `update encode_jobs set state = 'cancelled', finished_at = clock_timestamp()
     where video_id = $1 and state = 'running'`,
    [videoId],
    'video-cancel-jobs',
  );
  await tx.query(
    `update encode_tasks set status = 'cancelled', finished_at = clock_timestamp()
     where video_id = $1 and status in ('queued', 'processing')`,
    [videoId],
    'video-cancel-tasks',
  );
}

/**
 * Marks a video's objects for the sweep, also replaced posters, which would go later. Objects under a legal hold stay
 * until it is lifted, which calls this again (contract HLD-009).
 */
export async function doomObjects(
  tx: Transaction,
  videoId: string,
  which: 'all' | 'attempts' = 'all',
): Promise<void> {
  await tx.query(
    `update object_prefixes set delete_after = clock_timestamp()
     where video_id = $1 and (delete_after is null or (kind = 'attempt' and delete_after > clock_timestamp()))
       and ($2 = 'all' or kind = 'attempt')
       and not ${underLegalHold('$1')}`,
    [videoId, which],
    'video-doom-objects',
  );
}

async function announce(
  tx: Transaction,
  video: VideoRow,
  type: EventType | null,
  reason: string | null,
  headers: Record<string, string>,
): Promise<void> {
  const messages = [{ ...videoStateMessage(await videoPlaybackStateOf(tx, video)), headers }];
  if (type !== null) {
    const eventId = newId('evt');
    const createdAt = video.updatedAt;
    const data = reason === null ? { video: videoResource(video) } : { video: videoResource(video), reason };
    const body = { id: eventId, type, createdAt: createdAt.toISOString(), projectId: video.projectId, data };
    await tx.query(
      `insert into events (id, type, account_id, project_id, video_id, body, created_at)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [
        eventId,
        type,
        video.accountId,
        video.projectId,
        video.id,
        Buffer.from(JSON.stringify(body)),
        createdAt,
      ],
      'event-insert',
    );
    messages.push({
      topic: topics.videoEvents.name,
      key: video.id,
      version: video.version,
      value: { v: 1, eventId, type, projectId: video.projectId, videoId: video.id },
      headers,
    });
  }
  await addToOutbox(tx, messages);
}
