import { type CaptionsPlaybackState } from '@millrace/contract';
import { type Transaction } from './db.ts';

/** Captions whose object is there, and stays. */
export const liveCaptions = `captions c join object_prefixes p on p.prefix = c.prefix and p.delete_after is null`;

/** What the CDN knows of the captions of a video, as a column; `videoId` is SQL. */
export const captionsColumn = (videoId: string): string => `coalesce((
  select json_agg(json_build_object('language', c.language, 'name', c.name, 'bytes', c.bytes,
    'key', c.prefix || c.language || '.vtt') order by c.language collate "C")
  from ${liveCaptions} where c.video_id = ${videoId}), '[]')`;

/**
 * The same of one video, whose row the caller has locked: a statement of its own, since one that waits for the
 * lock sees the captions of before it waited.
 */
export async function captionsStatesOf(tx: Transaction, videoId: string): Promise<CaptionsPlaybackState[]> {
  const { rows } = await tx.query<{ captions: CaptionsPlaybackState[] }>(
    `select ${captionsColumn('$1')} as captions`,
    [videoId],
    'captions-states',
  );
  return rows[0]?.captions ?? [];
}
