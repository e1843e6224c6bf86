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

const from = `from api_keys k
  join projects p on p.id = k.project_id and p.deleted_at is null
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
    `select ${columns}, p.name, p.branding, p.created_at as "createdAt", ${planColumns} ${from} where k.id = $1`,
    [keyId],
    'key-holder',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { projectId: id, accountId, name, branding, createdAt } = row;
  return { holder: row, project: { id, accountId, name, branding, createdAt }, plan: planOf(row) };
}

interface VideoColumns extends KeyHolder, Omit<VideoView, 'id'> {
  videoId: string | null;
  maxQuality: Quality;
}

const withVideo = `select ${columns}, v.id as "videoId", ${videoViewColumns}, pl.max_quality as "maxQuality" ${from}
  left join videos v on v.id = $2 and v.project_id = p.id and v.deleted_at is null
  where k.id = $1`;

/**
 * Who holds a key and a video of its project, in one look-up: for what is asked often. The video is null when the
 * project has none of that id.
 */
export async function findKeyHolderOfVideo(
  db: Queryable,
  keyId: string,
  videoId: string,
): Promise<{ holder: KeyHolder; video: VideoView | null } | null> {
  const { rows } = await db.query<VideoColumns>(withVideo, [keyId, videoId], 'key-holder-of-video');
  const row = rows[0];
  if (row === undefined) return null;
  return { holder: row, video: row.videoId === null ? null : Object.assign(row, { id: row.videoId }) };
}
