import { newId } from '@millrace/domain';
import { type Queryable } from '@millrace/store';

export interface SeededAccount {
  accountId: string;
  projectId: string;
}

/** An active account with one project, written straight into the record. */
export async function seedAccount(
  db: Queryable,
  { planId = 'agency', anchorDay = 1 }: { planId?: string; anchorDay?: number } = {},
): Promise<SeededAccount> {
  const accountId = newId('acc');
  const projectId = newId('prj');
  await db.query(
    `insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
     values ($1, 'Test account', $2, $3, now(), now())`,
    [accountId, planId, anchorDay],
  );
  await db.query(
    `insert into projects (id, account_id, name, created_at, updated_at)
     values ($1, $2, 'Test project', now(), now())`,
    [projectId, accountId],
  );
  return { accountId, projectId };
}

/** A video in `processing` whose original lies at `sourceKey`, without an encode job. */
export async function seedProcessingVideo(
  db: Queryable,
  { accountId, projectId }: SeededAccount,
  { videoId = newId('vid'), sourceKey }: { videoId?: string; sourceKey?: string } = {},
): Promise<string> {
  const prefix = `videos/${videoId}/original/`;
  const key = sourceKey ?? `${prefix}source`;
  await db.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, source_key, created_at, updated_at)
     values ($1, $2, $3, 'Test video', 'processing', 1000, $4, now(), now())`,
    [videoId, projectId, accountId, key],
  );
  await db.query(
    `insert into object_prefixes (prefix, video_id, kind, created_at) values ($1, $2, 'source', now())`,
    [key.slice(0, key.lastIndexOf('/') + 1), videoId],
  );
  return videoId;
}
