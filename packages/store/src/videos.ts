import {
  type FailureCode,
  type IngestReport,
  type Quality,
  type Video,
  type VideoPlaybackState,
  type VideoStatus,
  withinQuality,
} from '@millrace/contract';
import { captionsStatesOf } from './captions-state.ts';
import { type Queryable, type Transaction } from './db.ts';
import { addToOutbox, videoStateMessage } from './outbox.ts';
import { limitingPlanId } from './plans.ts';
import { renewPoster } from './poster-jobs.ts';

/** A row of `videos` with what is needed beside it. Durations in milliseconds. */
export interface VideoRow {
  id: string;
  projectId: string;
  accountId: string;
  title: string;
  status: VideoStatus;
  version: number;
  sizeBytes: number;
  durationMs: number | null;
  /** As encoded; `videoResource` filters by the plan. */
  qualities: Quality[];
  failureCode: FailureCode | null;
  failureMessage: string | null;
  posterAtSeconds: number | null;
  sourceKey: string | null;
  currentJobId: string | null;
  /** The job that makes its poster anew, or made the one it has. */
  posterJobId: string | null;
  indexKey: string | null;
  createdAt: Date;
  updatedAt: Date;
  readyAt: Date | null;
  deletedAt: Date | null;
  /** Today's maximum quality of the account's plan. */
  maxQuality: Quality;
}

/** What customers see of it is made of these. */
export type VideoView = Pick<
  VideoRow,
  | ('id' | 'projectId' | 'title' | 'status' | 'sizeBytes' | 'durationMs' | 'qualities' | 'maxQuality')
  | ('failureCode' | 'failureMessage' | 'createdAt' | 'updatedAt' | 'readyAt')
>;

/** Columns of a `VideoView` but for its ids and the plan's quality; for `from videos v`. */
export const videoViewColumns = `v.title, v.status, v.size_bytes as "sizeBytes", v.duration_ms as "durationMs",
  v.qualities, v.failure_code as "failureCode", v.failure_message as "failureMessage", v.created_at as "createdAt",
  v.updated_at as "updatedAt", v.ready_at as "readyAt"`;

/** Columns of a `VideoRow`; for `from videos v join accounts a … join plans p …`. */
const columns = `v.id, v.project_id as "projectId", v.account_id as "accountId", ${videoViewColumns}, v.version,
  v.poster_at_seconds as "posterAtSeconds", v.source_key as "sourceKey", v.current_job_id as "currentJobId",
  v.poster_job_id as "posterJobId", v.index_key as "indexKey", v.deleted_at as "deletedAt",
  p.max_quality as "maxQuality"`;

/** `canceled` accounts have the free plan's limits (contract ACC-103). */
const from = `from videos v
  join accounts a on a.id = v.account_id
  join plans p on p.id = ${limitingPlanId}`;

/** `updated_at` of the next change: strictly later than before, in whole milliseconds, by database time. */
export const risingUpdatedAt = `greatest(date_trunc('milliseconds', clock_timestamp()),
  updated_at + interval '1 millisecond')`;

/** The Video resource as customers see it (contract "Video"). */
export function videoResource(row: VideoView): Video {
  return {
    id: row.id,
    projectId: row.projectId,
    title: row.title,
    status: row.status,
    durationSeconds: row.durationMs === null ? null : row.durationMs / 1000,
    qualities:
      row.status === 'ready' || row.status === 'held'
        ? row.qualities.filter((quality) => withinQuality(quality, row.maxQuality))
        : [],
    sizeBytes: row.sizeBytes,
    failure:
      row.failureCode === null
        ? null
        : { code: row.failureCode, message: row.failureMessage ?? row.failureCode },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    readyAt: row.readyAt?.toISOString() ?? null,
    accessMode: 'protected',
  };
}

/** What the CDN knows of a video whose row the caller has locked. */
export const videoPlaybackStateOf = async (tx: Transaction, row: VideoRow): Promise<VideoPlaybackState> => ({
  videoId: row.id,
  accountId: row.accountId,
  version: row.version,
  status: row.deletedAt === null ? row.status : 'deleted',
  indexKey: row.indexKey,
  projectId: row.projectId,
  title: row.title,
  captions: await captionsStatesOf(tx, row.id),
});

/** A video that is not deleted, within a project; null when there is none. */
export async function findVideo(db: Queryable, projectId: string, videoId: string): Promise<VideoRow | null> {
  const { rows } = await db.query<VideoRow>(
    `select ${columns} ${from} where v.id = $1 and v.project_id = $2 and v.deleted_at is null`,
    [videoId, projectId],
    'video-find',
  );
  return rows[0] ?? null;
}

/** A video by id alone, deleted or not, for the team's and internal routes. */
export async function findAnyVideo(db: Queryable, videoId: string): Promise<VideoRow | null> {
  const { rows } = await db.query<VideoRow>(
    `select ${columns} ${from} where v.id = $1`,
    [videoId],
    'video-find-any',
  );
  return rows[0] ?? null;
}

/** Locks a video's row until the transaction ends. The lock comes before every other lock but the upload's. */
export async function lockVideo(tx: Transaction, videoId: string): Promise<VideoRow | null> {
  const { rows } = await tx.query<VideoRow>(
    `select ${columns} ${from} where v.id = $1 for no key update of v`,
    [videoId],
    'video-lock',
  );
  return rows[0] ?? null;
}

/** Filters of the video list (contract VID-202 to VID-206). */
export interface VideoFilters {
  status?: VideoStatus | undefined;
  /** Literal part of the title, in any case. */
  q?: string | undefined;
  createdFrom?: Date | undefined;
  /** Exclusive. */
  createdTo?: Date | undefined;
}

/** A place in a list ordered by creation: what comes after this row. */
export interface PageKey {
  createdAt: Date;
  id: string;
}

/**
 * Videos of a project that are not deleted, newest first, after a place in that order. `createdAt` has whole
 * milliseconds, so that it survives a cursor; the id tells apart what was created in the same one.
 */
export async function listVideos(
  db: Queryable,
  projectId: string,
  filters: VideoFilters,
  page: { limit: number; after: PageKey | null },
): Promise<VideoRow[]> {
  const { rows } = await db.query<VideoRow>(
    `select ${columns} ${from}
     where v.project_id = $1 and v.deleted_at is null
       and ($2::text is null or v.status = $2)
       -- the database's own collation folds ASCII only
       and ($3::text is null or
         position(lower($3 collate "pg_c_utf8") in lower(v.title collate "pg_c_utf8")) > 0)
       and ($4::timestamptz is null or v.created_at >= $4)
       and ($5::timestamptz is null or v.created_at < $5)
       and ($6::timestamptz is null or (v.created_at, v.id) < ($6, $7))
     order by v.created_at desc, v.id desc limit $8`,
    [
      projectId,
      filters.status ?? null,
      filters.q ?? null,
      filters.createdFrom ?? null,
      filters.createdTo ?? null,
      page.after?.createdAt ?? null,
      page.after?.id ?? null,
      page.limit,
    ],
  );
  return rows;
}

/** What a customer may change of a video; what is absent stays. */
export interface VideoPatch {
  title?: string | undefined;
  /** Null: chosen by the encoder. */
  posterAtSeconds?: number | null | undefined;
}

/**
 * Changes a video whose row the caller has locked; `updatedAt` rises, and the CDN hears of it. Another poster is made
 * by a job, after which the CDN hears again.
 */
export async function patchVideo(tx: Transaction, before: VideoRow, patch: VideoPatch): Promise<VideoRow> {
  const title = patch.title ?? before.title;
  const posterAtSeconds =
    patch.posterAtSeconds === undefined ? before.posterAtSeconds : patch.posterAtSeconds;
  const posterJobId =
    patch.posterAtSeconds === undefined
      ? before.posterJobId
      : await renewPoster(tx, before, patch.posterAtSeconds);
  const { rows } = await tx.query<{ version: number; updatedAt: Date }>(
    `update videos set title = $2, poster_at_seconds = $3, version = version + 1, updated_at = ${risingUpdatedAt}
     where id = $1 returning version, updated_at as "updatedAt"`,
    [before.id, title, posterAtSeconds],
    'video-patch',
  );
  const video = { ...before, ...rows[0], title, posterAtSeconds, posterJobId };
  await addToOutbox(tx, [videoStateMessage(await videoPlaybackStateOf(tx, video))]);
  return video;
}

/** The ingest report of a video's latest encode, with what became of a later poster; null before there is one. */
export async function findIngestReport(
  db: Queryable,
  projectId: string,
  videoId: string,
): Promise<IngestReport | null> {
  const { rows } = await db.query<
    Pick<IngestReport, 'state' | 'details'> & { createdAt: Date; finishedAt: Date | null }
  >(
    `select j.state, j.created_at as "createdAt", j.finished_at as "finishedAt",
       j.report || case when p.id is null then '{}' else jsonb_build_object('poster',
         jsonb_build_object('state', p.state, 'atSeconds', v.poster_at_seconds) || p.report) end as details
     from videos v join encode_jobs j on j.id = v.current_job_id
       left join encode_jobs p on p.id = v.poster_job_id
     where v.id = $1 and v.project_id = $2 and v.deleted_at is null`,
    [videoId, projectId],
    'video-ingest-report',
  );
  const row = rows[0];
  if (!row) return null;
  const { state, details, createdAt, finishedAt } = row;
  return {
    videoId,
    state,
    startedAt: createdAt.toISOString(),
    finishedAt: finishedAt?.toISOString() ?? null,
    details,
  };
}
