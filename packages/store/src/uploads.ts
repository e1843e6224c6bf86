import { ProblemError } from '@millrace/contract';
import { decideUpload, type UploadState } from '@millrace/domain';
import { type Database, type Queryable, type Transaction } from './db.ts';
import { eachOfPages } from './each.ts';
import { lockUsage } from './usage.ts';
import { activeHolds, moveVideo } from './video-moves.ts';

/** A row of `uploads`. Sizes in bytes. */
export interface UploadRow {
  id: string;
  videoId: string;
  projectId: string;
  accountId: string;
  /** Where the joined object goes, and the store's name of the multipart upload. */
  objectKey: string;
  storeUploadId: string;
  state: UploadState;
  declaredBytes: number;
  partSizeBytes: number;
  partCount: number;
  /** Cap on the real size that came with an upload token. */
  maxBytes: number | null;
  /** The upload token that started it, and the SHA-256 of the body that it came with. */
  tokenId: string | null;
  tokenBodyHash: Buffer | null;
  createdAt: Date;
  expiresAt: Date;
  /** By database time, when the row was read. */
  overdue: boolean;
  leased: boolean;
}

const columns = `id, video_id as "videoId", project_id as "projectId", account_id as "accountId",
  object_key as "objectKey", store_upload_id as "storeUploadId", state, declared_bytes as "declaredBytes",
  part_size_bytes as "partSizeBytes", part_count as "partCount", max_bytes as "maxBytes",
  token_id as "tokenId", token_body_hash as "tokenBodyHash",
  created_at as "createdAt", expires_at as "expiresAt", expires_at <= clock_timestamp() as overdue,
  coalesce(completing_until > clock_timestamp(), false) as leased`;

export interface NewUpload {
  id: string;
  videoId: string;
  projectId: string;
  accountId: string;
  title: string;
  fileName: string | null;
  declaredBytes: number;
  contentType: string;
  /** Random and of this upload alone; the object's key lies under it. */
  prefix: string;
  objectKey: string;
  storeUploadId: string;
  partSizeBytes: number;
  partCount: number;
  /** Set when an upload token starts it, which that spends. */
  token: {
    tokenId: string;
    bodyHash: Buffer;
    maxBytes: number;
    /** What the content must be; null: any that is supported. */
    contentType: string | null;
  } | null;
}

/** How long part URLs live at first: a day, and some minutes so that no clock makes it less. */
const firstLife = `interval '24 hours 5 minutes'`;
/** What resuming adds, and how long after its start an upload lives at most. */
const resumedLife = `interval '24 hours'`;
const longestLife = `interval '7 days'`;

/**
 * Records a new upload with its video and its object prefix. Nobody can send a byte before this has committed:
 * part URLs are handed out after it. The account's lock orders it against whatever else counts against the
 * limits, and against the deletion of the project, which wants it empty.
 *
 * @throws ProblemError `plan_limit_reached`; `not_found` when the project is gone
 * @throws a unique violation of `uploads_token` when the token was spent meanwhile
 */
export async function insertUpload(tx: Transaction, upload: NewUpload): Promise<UploadRow> {
  await assertUploadRoom(tx, upload.accountId);
  const { rowCount: projects } = await tx.query(
    'select from projects where id = $1 and deleted_at is null',
    [upload.projectId],
    'upload-project',
  );
  if (projects === 0) throw new ProblemError('not_found');
  await tx.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, created_at, updated_at)
     select $1, $2, $3, $4, 'uploading', $5, $6, now, now
     from date_trunc('milliseconds', clock_timestamp()) now`,
    [
      upload.videoId,
      upload.projectId,
      upload.accountId,
      upload.title,
      upload.declaredBytes,
      upload.objectKey,
    ],
    'upload-insert-video',
  );
  await tx.query(
    `insert into object_prefixes (prefix, video_id, kind, created_at)
     values ($1, $2, 'source', clock_timestamp())`,
    [upload.prefix, upload.videoId],
    'upload-insert-prefix',
  );
  const { rows } = await tx.query<UploadRow>(
    `insert into uploads (id, video_id, project_id, account_id, object_key, store_upload_id, declared_bytes,
       content_type, file_name, part_size_bytes, part_count, token_id, token_body_hash,
       max_bytes, bound_content_type, created_at, expires_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, now, now + ${firstLife}
     from (select created_at as now from videos where id = $2) video
     returning ${columns}`,
    [
      upload.id,
      upload.videoId,
      upload.projectId,
      upload.accountId,
      upload.objectKey,
      upload.storeUploadId,
      upload.declaredBytes,
      upload.contentType,
      upload.fileName,
      upload.partSizeBytes,
      upload.partCount,
      upload.token?.tokenId ?? null,
      upload.token?.bodyHash ?? null,
      upload.token?.maxBytes ?? null,
      upload.token?.contentType ?? null,
    ],
    'upload-insert',
  );
  const row = rows[0];
  if (!row) throw new Error(`upload ${upload.id} was not inserted`);
  return row;
}

/**
 * Refuses an upload to an account that has used up its stored or upload seconds. Nothing is reserved at the start: the
 * length is not known yet. So it is enough that something is left.
 * @throws ProblemError `plan_limit_reached`
 */
export async function assertUploadRoom(tx: Transaction, accountId: string): Promise<void> {
  const usage = await lockUsage(tx, accountId);
  const full = (usedMs: number, limitMs: number | null, what: string): void => {
    if (limitMs === null || usedMs < limitMs) return;
    const seconds = (ms: number): number => Math.floor(ms / 1000);
    throw new ProblemError('plan_limit_reached', {
      detail: `${seconds(usedMs)} of the ${seconds(limitMs)} ${what} of the plan ${usage.planName} are used.`,
    });
  };
  full(usage.storedMs, usage.storedLimitMs, 'stored seconds');
  full(usage.uploadMs, usage.uploadLimitMs, 'upload seconds per period');
}

/** Closed uploads are remembered for 30 days (contract UPL-237). */
const remembered = `(closed_at is null or closed_at > clock_timestamp() - interval '30 days')`;

/** An upload of a project, open or closed; null when there is none. */
export async function findUpload(
  db: Queryable,
  projectId: string,
  uploadId: string,
): Promise<UploadRow | null> {
  const { rows } = await db.query<UploadRow>(
    `select ${columns} from uploads where id = $1 and project_id = $2 and ${remembered}`,
    [uploadId, projectId],
    'upload-find',
  );
  return rows[0] ?? null;
}

/** The upload that a token started, open or closed; null while the token is unspent. */
export async function findUploadOfToken(db: Queryable, tokenId: string): Promise<UploadRow | null> {
  const { rows } = await db.query<UploadRow>(
    `select ${columns} from uploads where token_id = $1`,
    [tokenId],
    'upload-of-token',
  );
  return rows[0] ?? null;
}

/** Locks an upload's row until the transaction ends; this lock comes before its video's. */
export async function lockUpload(tx: Transaction, uploadId: string): Promise<UploadRow | null> {
  const { rows } = await tx.query<UploadRow>(
    `select ${columns} from uploads where id = $1 for update`,
    [uploadId],
    'upload-lock',
  );
  return rows[0] ?? null;
}

/**
 * Gives an open upload another 24 hours, up to 7 days after its start. Null when it is not open (any more).
 */
export async function extendUpload(db: Queryable, uploadId: string): Promise<UploadRow | null> {
  const { rows } = await db.query<UploadRow>(
    `update uploads set expires_at = least(created_at + ${longestLife}, expires_at + ${resumedLife})
     where id = $1 and state = 'open' and expires_at > clock_timestamp()
     returning ${columns}`,
    [uploadId],
    'upload-extend',
  );
  return rows[0] ?? null;
}

/**
 * Cancels an open upload and deletes its video. Its parts are left to the sweep of its prefix; `removable` says
 * whether the caller may hasten that (not under a legal hold).
 *
 * @throws ProblemError `not_found`, `upload_closed`
 */
export async function cancelUpload(
  tx: Transaction,
  uploadId: string,
): Promise<{ upload: UploadRow; removable: boolean }> {
  const upload = await lockUpload(tx, uploadId);
  if (!upload) throw new ProblemError('not_found');
  if (decideUpload(upload, 'cancelled').kind !== 'move') throw new ProblemError('upload_closed');
  await moveVideo(tx, upload.videoId, { type: 'upload_cancelled' }, { deletedBy: 'cancel' });
  const holds = await activeHolds(tx, upload.videoId);
  return { upload, removable: !holds.some((hold) => hold.legal) };
}

/**
 * Expires open uploads whose time is over and deletes their videos; the sweep removes their parts. Safe to run
 * twice and side by side: each upload is decided under its lock. For the reconciler.
 *
 * @returns how many expired
 */
export async function expireUploads(
  db: Database,
  { signal, limit = 100 }: { signal?: AbortSignal; limit?: number } = {},
): Promise<number> {
  const page = async (after: string): Promise<{ id: string }[]> => {
    const { rows } = await db.query<{ id: string }>(
      `select id from uploads where state = 'open' and expires_at <= clock_timestamp() and id > $2
       order by id limit $1`,
      [limit, after],
      'uploads-overdue',
    );
    return rows;
  };
  const expire = ({ id }: { id: string }): Promise<number> =>
    db.transaction(async (tx) => {
      const upload = await lockUpload(tx, id);
      if (!upload || decideUpload(upload, 'expired').kind !== 'move') return 0;
      await moveVideo(tx, upload.videoId, { type: 'upload_expired' }, { deletedBy: 'expiry' });
      return 1;
    });
  return eachOfPages(page, expire, { signal });
}
