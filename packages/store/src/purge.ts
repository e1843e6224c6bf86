import { type Queryable } from './db.ts';
import { underLegalHold } from './legal-holds.ts';

/** A prefix whose objects must go. `upload` is the multipart upload that may still be open under it. */
export interface DoomedPrefix {
  prefix: string;
  videoId: string;
  /** True when it was purged a day ago: an empty listing now ends it for good. */
  purgedBefore: boolean;
  upload: { key: string; uploadId: string } | null;
  /** When it was tombstoned for, as text, since a `Date` has no microseconds. */
  deleteAfter: string;
}

/** Where a look at doomed prefixes ended. */
export type PurgeCursor = Pick<DoomedPrefix, 'deleteAfter' | 'prefix'>;

/**
 * Prefixes to purge now: tombstoned and never purged, or purged a day ago and due for the second look (a worker
 * that was paused for long may have written after the first). Under a legal hold they wait until it is lifted.
 * @param after the last of those that were looked at before; null for the oldest
 */
export async function doomedPrefixes(
  db: Queryable,
  limit: number,
  after: PurgeCursor | null = null,
): Promise<DoomedPrefix[]> {
  const { rows } = await db.query<
    Omit<DoomedPrefix, 'upload'> & { key: string | null; uploadId: string | null }
  >(
    `select p.prefix, p.video_id as "videoId", p.purged_at is not null as "purgedBefore",
       p.delete_after::text as "deleteAfter",
       u.object_key as key, u.store_upload_id as "uploadId"
     from object_prefixes p
     left join uploads u on p.kind = 'source' and u.video_id = p.video_id and u.state <> 'completed'
     where p.delete_after <= clock_timestamp()
       and (p.purged_at is null or p.purged_at < clock_timestamp() - interval '1 day')
       and not ${underLegalHold('p.video_id')}
       and ($2::timestamptz is null or (p.delete_after, p.prefix) > ($2, $3))
     order by p.delete_after, p.prefix limit $1`,
    [limit, after?.deleteAfter ?? null, after?.prefix ?? ''],
    'purge-doomed',
  );
  return rows.map(({ key, uploadId, ...row }) => ({
    ...row,
    upload: key === null || uploadId === null ? null : { key, uploadId },
  }));
}

/** Whether a listed prefix may still be purged: a legal hold may have come since. */
export async function mayPurge(db: Queryable, { videoId }: DoomedPrefix): Promise<boolean> {
  const { rows } = await db.query<{ may: boolean }>(
    `select not ${underLegalHold('$1')} as may`,
    [videoId],
    'purge-may',
  );
  return rows[0]?.may === true;
}

/** Records a purge; the second look comes a day later. */
export async function markPurged(db: Queryable, prefix: string): Promise<void> {
  await db.query(
    'update object_prefixes set purged_at = clock_timestamp() where prefix = $1',
    [prefix],
    'purge-mark',
  );
}

/** Forgets a prefix that was found empty at its second look. */
export async function forgetPrefix(db: Queryable, { prefix }: Pick<DoomedPrefix, 'prefix'>): Promise<void> {
  await db.query('delete from object_prefixes where prefix = $1', [prefix], 'purge-forget');
}

/**
 * Marks deleted videos of which no prefix is left: an erasure waits for it. By what is there, not with the last prefix:
 * that may go before the video is deleted (a failed one's, say), or a crash come in between.
 * @returns how many were marked
 */
export async function markPurgedVideos(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `update videos v set purged_at = clock_timestamp()
     where deleted_at is not null and purged_at is null
       and not exists (select from object_prefixes p where p.video_id = v.id)`,
    [],
    'purge-videos-done',
  );
  return rowCount;
}

/**
 * Store uploads that no row of `uploads` knows: left by a crash between the store and the record. What was closed is
 * known as long as its prefix is not given up, or a legal hold keeps it.
 */
export async function unknownUploads(
  db: Queryable,
  uploads: readonly { key: string; uploadId: string }[],
): Promise<{ key: string; uploadId: string }[]> {
  const { rows } = await db.query<{ key: string; uploadId: string }>(
    `select o.key, o.upload_id as "uploadId"
     from unnest($1::text[], $2::text[]) o (key, upload_id)
     where not exists (
       select from uploads u where u.store_upload_id = o.upload_id
         and (u.state in ('open', 'completing') or exists (
           select from object_prefixes p
           where p.video_id = u.video_id and p.kind = 'source'
             and (p.delete_after is null or ${underLegalHold('u.video_id')}))))`,
    [uploads.map((upload) => upload.key), uploads.map((upload) => upload.uploadId)],
    'purge-unknown-uploads',
  );
  return rows;
}

const expired = {
  idempotency: `created_at < clock_timestamp() - interval '24 hours'`,
  sessions: 'expires_at < clock_timestamp()',
  api_keys: `revoked_at < clock_timestamp() - interval '30 days'`,
  phone_challenges: `created_at < clock_timestamp() - interval '30 days'`,
};

/**
 * Removes rows past their retention: idempotency results 24 hours, expired sessions, keys revoked 30 days ago, phone
 * challenges 30 days. Returns how many went.
 */
export async function expireRows(db: Queryable, options: Batches = {}): Promise<number> {
  let removed = 0;
  for (const [table, condition] of Object.entries(expired))
    removed += await removeRows(db, { table, condition }, options);
  return removed;
}

/** Removes rate windows that are over, of 10 minutes ago. Returns how many went. */
export const expireRateWindows = (db: Queryable, options: Batches = {}): Promise<number> =>
  removeRows(
    db,
    { table: 'rate_windows', condition: `starts_at < clock_timestamp() - interval '10 minutes'` },
    options,
  );

/** Watched segments live as long as their tokens, a day at most: what is of 3 days ago can be reported no more. */
export const purgeViews = (db: Queryable, options: Batches = {}): Promise<number> =>
  removeRows(
    db,
    { table: 'playback_views', condition: `updated_at < clock_timestamp() - interval '3 days'` },
    options,
  );

interface Batches {
  signal?: AbortSignal;
  /** Rows that one statement removes: however many are due, each ends in its time. */
  limit?: number;
}

async function removeRows(
  db: Queryable,
  { table, condition }: { table: string; condition: string },
  { signal, limit = 5_000 }: Batches,
): Promise<number> {
  let removed = 0;
  for (let last = limit; last === limit && signal?.aborted !== true; removed += last) {
    // A row that was changed since it was found has another ctid, and stays.
    const { rowCount } = await db.query(
      `delete from ${table} where ctid = any (array (select ctid from ${table} where ${condition} limit $1))`,
      [limit],
      `expire-${table}`,
    );
    last = rowCount;
  }
  return removed;
}
