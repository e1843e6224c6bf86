import DataLoader from 'dataloader';
import { type ApiKeyScope, type Quality } from '@millrace/contract';
import { phoneBannedColumn } from './bans.ts';
import { type Queryable } from './db.ts';
import { joinPlan, type Plan, planColumns, type PlanColumns, planOf } from './plans.ts';
import { type ProjectRow } from './projects.ts';
import { type VideoView, videoViewColumns } from './videos.ts';

/** What decides whether a key may be used, and for what. */
export interface KeyHolder {
  keyId: string;
  scope: ApiKeyScope;
  secretHash: Buffer;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  projectId: string;
  accountId: string;
  bannedAt: Date | null;
  /** The number that the account has verified is banned. */
  phoneBanned: boolean;
}

const columns = `k.id as "keyId", k.scope, k.secret_hash as "secretHash", k.expires_at as "expiresAt",
  k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt", p.id as "projectId", p.account_id as "accountId",
  a.banned_at as "bannedAt", ${phoneBannedColumn}`;

const ofKey = `join projects p on p.id = k.project_id and p.deleted_at is null
  join accounts a on a.id = p.account_id
  ${joinPlan}`;

interface ProjectColumns extends KeyHolder, PlanColumns {
  name: string;
  branding: ProjectRow['branding'];
  createdAt: Date;
}

/**
 * Who holds a key, with its project and the plan that limits it, in one look-up; null when the key or its project is
 * gone. The caller compares the secret.
 */
export async function findKeyHolder(
  db: Queryable,
  keyId: string,
): Promise<{ holder: KeyHolder; project: ProjectRow; plan: Plan } | null> {
  const { rows } = await db.query<ProjectColumns>(
    `select ${columns}, p.name, p.branding, p.created_at as "createdAt", ${planColumns}
     from api_keys k ${ofKey} where k.id = $1`,
    [keyId],
    'key-holder',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { projectId: id, accountId, name, branding, createdAt } = row;
  return { holder: row, project: { id, accountId, name, branding, createdAt }, plan: planOf(row) };
}

interface VideoColumns extends KeyHolder, Omit<VideoView, 'id'> {
  /** Which of the look-ups, from 1. */
  n: number;
  videoId: string | null;
  maxQuality: Quality;
}

// The lists come as sub-selects, whose length the planner does not look at: it would plan short ones anew each time.
const withVideo = `select l.n::integer as n, ${columns}, v.id as "videoId", ${videoViewColumns},
    pl.max_quality as "maxQuality"
  from unnest((select $1::text[]), (select $2::text[])) with ordinality as l (key_id, video_id, n)
  join api_keys k on k.id = l.key_id
  ${ofKey}
  left join videos v on v.id = l.video_id and v.project_id = p.id and v.deleted_at is null`;

/** Look-ups in one statement at most: a reader must not wait long for the rest. */
const mostAtOnce = 64;

/**
 * Makes a look-up of who holds a key and a video of its project, for what is asked most: what is asked in one turn of
 * the event loop goes to the record as one statement, so that the busier a process is the less a look-up costs. Null
 * when the key or its project is gone; the video is null when the project has none of that id.
 */
export function keyHoldersOfVideos(
  db: Queryable,
): (keyId: string, videoId: string) => Promise<{ holder: KeyHolder; video: VideoView | null } | null> {
  const loader = new DataLoader<{ keyId: string; videoId: string }, VideoColumns | null>(
    async (asked) => {
      const { rows } = await db.query<VideoColumns>(
        withVideo,
        [asked.map(({ keyId }) => keyId), asked.map(({ videoId }) => videoId)],
        'key-holders-of-videos',
      );
      const found = new Array<VideoColumns | null>(asked.length).fill(null);
      for (const row of rows) found[row.n - 1] = row;
      return found;
    },
    { cache: false, maxBatchSize: mostAtOnce, batchScheduleFn: (send) => void setImmediate(send) },
  );
  return async (keyId, videoId) => {
    const row = await loader.load({ keyId, videoId });
    if (row === null) return null;
    const { videoId: id, title, status, sizeBytes, durationMs, qualities, maxQuality, projectId } = row;
    const { failureCode, failureMessage, createdAt, updatedAt, readyAt } = row;
    const video = { title, status, sizeBytes, durationMs, qualities, maxQuality, projectId };
    return {
      holder: row,
      // Apart from the holder: what is answered must not carry its secret.
      video:
        id === null ? null : { ...video, id, failureCode, failureMessage, createdAt, updatedAt, readyAt },
    };
  };
}
