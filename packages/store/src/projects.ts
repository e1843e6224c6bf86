import { type Project, ProblemError } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { findAccount } from './accounts.ts';
import { effectiveBranding, projectPlaybackStateOf, type StoredBranding } from './branding.ts';
import { phoneBannedColumn } from './bans.ts';
import { type Queryable, type Transaction } from './db.ts';
import { addToOutbox, projectStateMessage } from './outbox.ts';
import {
  assertBelow,
  count,
  joinPlan,
  type Plan,
  planColumns,
  type PlanColumns,
  planOf,
  planOfAccount,
} from './plans.ts';
import { lockUsage } from './usage.ts';
import { deleteEndpointsOf } from './webhook-endpoints.ts';

export interface ProjectRow {
  id: string;
  accountId: string;
  name: string;
  branding: StoredBranding;
  createdAt: Date;
}

const columns = `id, account_id as "accountId", name, branding, created_at as "createdAt"`;

/**
 * The Project resource (contract "Project"). Without white label the branding shows what plays, the service's
 * own; what was stored comes back with the plan.
 */
export const projectResource = (row: ProjectRow, plan: Pick<Plan, 'whiteLabel'>): Project => ({
  id: row.id,
  name: row.name,
  createdAt: row.createdAt.toISOString(),
  whiteLabel: plan.whiteLabel,
  branding: effectiveBranding(row.branding, plan.whiteLabel),
});

/** A project of this account that is not deleted; null when there is none. */
export async function findProject(
  db: Queryable,
  accountId: string,
  projectId: string,
): Promise<ProjectRow | null> {
  const { rows } = await db.query<ProjectRow>(
    `select ${columns} from projects where id = $1 and account_id = $2 and deleted_at is null`,
    [projectId, accountId],
    'project-find',
  );
  return rows[0] ?? null;
}

/** A project with what a request needs to know of its account. */
export interface ProjectHolder {
  project: ProjectRow;
  plan: Plan;
  bannedAt: Date | null;
  /** The number that the account has verified is banned. */
  phoneBanned: boolean;
}

/** null when the project is gone. */
export async function findProjectHolder(db: Queryable, projectId: string): Promise<ProjectHolder | null> {
  const { rows } = await db.query<ProjectRow & PlanColumns & Pick<ProjectHolder, 'bannedAt' | 'phoneBanned'>>(
    `select p.id, p.account_id as "accountId", p.name, p.branding, p.created_at as "createdAt",
       a.banned_at as "bannedAt", ${phoneBannedColumn}, ${planColumns}
     from projects p join accounts a on a.id = p.account_id ${joinPlan}
     where p.id = $1 and p.deleted_at is null`,
    [projectId],
    'project-holder',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { id, accountId, name, branding, createdAt, bannedAt, phoneBanned } = row;
  const project = { id, accountId, name, branding, createdAt };
  return { project, plan: planOf(row), bannedAt, phoneBanned };
}

/** A project that is not deleted, by id alone: for the operator. */
export async function findAnyProject(db: Queryable, projectId: string): Promise<ProjectRow | null> {
  const { rows } = await db.query<ProjectRow>(
    `select ${columns} from projects where id = $1 and deleted_at is null`,
    [projectId],
  );
  return rows[0] ?? null;
}

/** Newest first, at most `limit`, after the position of the last row seen. */
export async function listProjects(
  db: Queryable,
  input: { accountId: string; limit: number; after: { createdAt: Date; id: string } | null },
): Promise<ProjectRow[]> {
  const { rows } = await db.query<ProjectRow>(
    `select ${columns} from projects
     where account_id = $1 and deleted_at is null
       and ($2::timestamptz is null or (created_at, id) < ($2, $3))
     order by created_at desc, id desc limit $4`,
    [input.accountId, input.after?.createdAt ?? null, input.after?.id ?? null, input.limit],
    'projects-page',
  );
  return rows;
}

/** @throws ProblemError `plan_limit_reached`, `not_found` for an unknown account */
export async function createProject(
  tx: Transaction,
  input: { accountId: string; name: string; now: Date },
): Promise<ProjectRow> {
  const { accountId, name, now } = input;
  if ((await findAccount(tx, accountId)) === null) throw new ProblemError('not_found');
  await lockUsage(tx, accountId);
  const plan = await planOfAccount(tx, accountId);
  const used = await count(tx, 'select count(*) from projects where account_id = $1 and deleted_at is null', [
    accountId,
  ]);
  assertBelow(plan.projects, used, 'projects');
  const { rows } = await tx.query<ProjectRow>(
    `insert into projects (id, account_id, name, created_at, updated_at)
     values ($1, $2, $3, $4, $4) returning ${columns}`,
    [newId('prj', now), accountId, name, now],
  );
  return only(rows);
}

/**
 * Changes what is given; fields of `branding` that are left out stay. The CDN hears of a new branding.
 * @throws ProblemError `not_found`
 */
export async function updateProject(
  tx: Transaction,
  input: { projectId: string; name?: string; branding?: StoredBranding },
): Promise<ProjectRow> {
  const { rows } = await tx.query<ProjectRow & { version: number }>(
    `update projects set name = coalesce($2, name), branding = branding || $3::jsonb, version = version + 1,
       updated_at = clock_timestamp()
     where id = $1 and deleted_at is null returning ${columns}, version`,
    [input.projectId, input.name ?? null, JSON.stringify(input.branding ?? {})],
  );
  const row = rows[0];
  if (row === undefined) throw new ProblemError('not_found');
  if (input.branding !== undefined) await addToOutbox(tx, [projectStateMessage(projectPlaybackStateOf(row))]);
  return row;
}

/**
 * Deletes a project without videos, its keys, domains and webhook endpoints. The account's lock keeps an upload
 * from starting meanwhile (whoever adds a video takes it too and looks at the project under it).
 * @throws ProblemError `project_not_empty`, `not_found`
 */
export async function deleteProject(
  tx: Transaction,
  input: { accountId: string; projectId: string; now: Date },
): Promise<void> {
  const { accountId, projectId, now } = input;
  await lockUsage(tx, accountId);
  const videos = await count(tx, 'select count(*) from videos where project_id = $1 and deleted_at is null', [
    projectId,
  ]);
  if (videos > 0) throw new ProblemError('project_not_empty');
  const { rowCount } = await tx.query(
    `update projects set deleted_at = $3, updated_at = $3
     where id = $1 and account_id = $2 and deleted_at is null`,
    [projectId, accountId, now],
  );
  if (rowCount === 0) throw new ProblemError('not_found');
  await tx.query('update api_keys set revoked_at = $2 where project_id = $1 and revoked_at is null', [
    projectId,
    now,
  ]);
  await tx.query('delete from domains where project_id = $1', [projectId]);
  await deleteEndpointsOf(tx, projectId);
}

function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error('an inserted row was not returned');
  return row;
}
