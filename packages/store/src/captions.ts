import { type Captions, ProblemError } from '@millrace/contract';
import { liveCaptions } from './captions-state.ts';
import { type Queryable, type Transaction } from './db.ts';
import { newPrefix } from './object-prefixes.ts';
import { lockVideo, patchVideo, type VideoRow } from './videos.ts';

interface CaptionsRow {
  language: string;
  name: string;
  createdAt: Date;
  updatedAt: Date;
}

const columns = `c.language, c.name, c.created_at as "createdAt", c.updated_at as "updatedAt"`;
/** Languages of one video. */
const maximumLanguages = 50;
/** A file that is not in use by then was given up: its request failed, or its process did. */
const unusedFor = `interval '1 hour'`;
/** CDN processes may go by an older state for a minute, and viewers by an older playlist for half of one. */
const replacedFor = `interval '10 minutes'`;

export const captionsResource = (row: CaptionsRow): Captions => ({
  language: row.language,
  name: row.name,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString(),
});

/** Key of the object of captions. */
export const captionsKey = (prefix: string, language: string): string => `${prefix}${language}.vtt`;

/** Captions of a video by language; null when the project has no such video. */
export async function listCaptions(
  db: Queryable,
  projectId: string,
  videoId: string,
): Promise<CaptionsRow[] | null> {
  const { rows } = await db.query<CaptionsRow | { language: null }>(
    `select ${columns} from videos v left join (${liveCaptions}) on c.video_id = v.id
     where v.id = $1 and v.project_id = $2 and v.deleted_at is null order by c.language collate "C"`,
    [videoId, projectId],
    'captions-list',
  );
  if (rows.length === 0) return null;
  return rows.filter((row) => row.language !== null);
}

/** Where captions belong. */
export interface CaptionsPlace {
  projectId: string;
  videoId: string;
  language: string;
}

/**
 * A new prefix for a file of captions. It is doomed until `setCaptions` takes it into use, so that whatever
 * becomes of the request nothing is left behind.
 * @throws ProblemError `not_found`, `plan_limit_reached`, `invalid_video_state`
 */
export async function openCaptionsPrefix(tx: Transaction, place: CaptionsPlace): Promise<string> {
  await lockTakingCaptions(tx, place);
  const prefix = newPrefix(place.videoId);
  await tx.query(
    `insert into object_prefixes (prefix, video_id, kind, created_at, delete_after)
     select $1, $2, 'captions', now, now + ${unusedFor} from clock_timestamp() now`,
    [prefix, place.videoId],
    'captions-open-prefix',
  );
  return prefix;
}

/**
 * Makes the file under a prefix the captions of a language, in place of those it had; raises the video's
 * version, and the CDN hears of it.
 * @throws ProblemError `not_found`, `plan_limit_reached`, `invalid_video_state`, `service_unavailable` when the
 *   prefix waited for too long
 */
export async function setCaptions(
  tx: Transaction,
  place: CaptionsPlace,
  file: { prefix: string; name: string; bytes: number },
): Promise<CaptionsRow> {
  const { videoId, language } = place;
  const video = await lockTakingCaptions(tx, place);
  const { rowCount } = await tx.query(
    `update object_prefixes set delete_after = null where prefix = $1 and delete_after > clock_timestamp()`,
    [file.prefix],
    'captions-keep-prefix',
  );
  if (rowCount === 0) throw new ProblemError('service_unavailable', { retryAfter: 1 });
  await doomReplaced(tx, videoId, language);
  const { rows } = await tx.query<CaptionsRow>(
    `insert into captions as c (video_id, language, name, prefix, bytes, created_at, updated_at)
     select $1, $2, $3, $4, $5, now, now from date_trunc('milliseconds', clock_timestamp()) now
     on conflict (video_id, language) do update set name = excluded.name, prefix = excluded.prefix,
       bytes = excluded.bytes,
       updated_at = greatest(excluded.updated_at, c.updated_at + interval '1 millisecond')
     returning ${columns}`,
    [videoId, language, file.name, file.prefix, file.bytes],
    'captions-set',
  );
  await patchVideo(tx, video, {});
  const row = rows[0];
  if (row === undefined) throw new Error('captions that were set were not returned');
  return row;
}

/**
 * Takes the captions of a language away; raises the video's version, and the CDN hears of it.
 * @throws ProblemError `not_found` when there are none
 */
export async function removeCaptions(tx: Transaction, place: CaptionsPlace): Promise<void> {
  const { videoId, language } = place;
  const video = await lockOwn(tx, place);
  await doomReplaced(tx, videoId, language);
  const { rowCount } = await tx.query(
    'delete from captions where video_id = $1 and language = $2',
    [videoId, language],
    'captions-remove',
  );
  if (rowCount === 0) throw new ProblemError('not_found');
  await patchVideo(tx, video, {});
}

async function lockOwn(tx: Transaction, { projectId, videoId }: CaptionsPlace): Promise<VideoRow> {
  const video = await lockVideo(tx, videoId);
  if (video?.projectId !== projectId || video.deletedAt !== null) throw new ProblemError('not_found');
  return video;
}

/** Locks a video that can have captions in this language. */
async function lockTakingCaptions(tx: Transaction, place: CaptionsPlace): Promise<VideoRow> {
  const video = await lockOwn(tx, place);
  const { rows } = await tx.query<{ others: number }>(
    'select count(*) as others from captions where video_id = $1 and language <> $2',
    [place.videoId, place.language],
    'captions-count-others',
  );
  if ((rows[0]?.others ?? 0) >= maximumLanguages) {
    throw new ProblemError('plan_limit_reached', {
      detail: `A video has captions in at most ${maximumLanguages} languages.`,
    });
  }
  if (video.status === 'failed') {
    throw new ProblemError('invalid_video_state', { detail: 'A video that failed takes no captions.' });
  }
  return video;
}

async function doomReplaced(tx: Transaction, videoId: string, language: string): Promise<void> {
  await tx.query(
    `update object_prefixes p set delete_after = clock_timestamp() + ${replacedFor}
     from captions c
     where c.video_id = $1 and c.language = $2 and p.prefix = c.prefix and p.delete_after is null`,
    [videoId, language],
    'captions-doom-replaced',
  );
}
