import { type TaskKind } from './encode-permits.ts';
import { isPlayable } from './poster-jobs.ts';
import { type VideoRow } from './videos.ts';

type Wanting = Pick<VideoRow, 'status' | 'deletedAt' | 'currentJobId' | 'posterJobId'>;

/**
 * Whether a video, whose row the caller has locked, still wants what a task's job makes: an encode while it is
 * `processing`, a poster while there is something to play.
 */
export function wantsTask(
  video: Wanting | null,
  { kind, jobId }: { kind: TaskKind; jobId: string },
): boolean {
  if (video === null || video.deletedAt !== null) return false;
  if (kind === 'poster') return isPlayable(video) && video.posterJobId === jobId;
  return video.status === 'processing' && video.currentJobId === jobId;
}

/** What `wantsTask` says, in SQL: of the task `t` and its video `v`. */
export const wantedTask = `(v.deleted_at is null and case when t.kind = 'poster'
  then v.status in ('ready', 'held') and v.poster_job_id = t.job_id
  else v.status = 'processing' and v.current_job_id = t.job_id end)`;
