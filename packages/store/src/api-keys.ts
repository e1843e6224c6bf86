import { type ApiKey, type ApiKeyScope, fieldProblem, ProblemError } from '@millrace/contract';
import { newApiKey } from '@millrace/domain';
import { phoneBannedColumn } from './bans.ts';
import { type Queryable, type Transaction } from './db.ts';
import { count, type Plan, planColumns, type PlanColumns, planOf, joinPlan } from './plans.ts';
import { type ProjectRow } from './projects.ts';

export interface ApiKeyRow {
  id: string;
  name: string;
  scope: ApiKeyScope;
  prefix: string;
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
}

const columns = `id, name, scope, prefix, created_at as "createdAt", last_used_at as "lastUsedAt",
  expires_at as "expiresAt", revoked_at as "revokedAt"`;
/** Neither revoked nor expired (contract AUT-001). */
const maximumActive = 50;

/** The API key resource; the value is never in it. */
export const apiKeyResource = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  scope: row.scope,
  prefix: row.prefix,
  createdAt: row.createdAt.toISOString(),
  lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
  expiresAt: row.expiresAt?.toISOString() ?? null,
  revokedAt: row.revokedAt?.toISOString() ?? null,
});

/**
 * A new key; its value is known only now.
 * @throws ProblemError `invalid_request` when it would expire at once, `plan_limit_reached` at 50 active keys,
 *   `not_found` for an unknown project
 */
export async function createApiKey(
  tx: Transaction,
  input: { projectId: string; name: string; scope: ApiKeyScope; expiresAt: Date | null; now: Date },
): Promise<{ key: ApiKeyRow; value: string }> {
  const { projectId, name, scope, expiresAt, now } = input;
  if (expiresAt !== null && expiresAt <= now) {
    throw fieldProblem('invalid_request', 'expiresAt', 'must be in the future');
  }
  // The project's row is the lock under which its keys are counted.
  const project = await tx.query(
    'select 1 from projects where id = $1 and deleted_at is null for no key update',
    [projectId],
  );
  if (project.rowCount === 0) throw new ProblemError('not_found');
  const active = await count(
    tx,
    `select count(*) from api_keys
     where project_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)`,
    [projectId, now],
  );
  if (active >= maximumActive) {
    throw new ProblemError('plan_limit_reached', {
      detail: `A project has at most ${maximumActive} active API keys.`,
    });
  }
  const { id, prefix, value, secretHash } = newApiKey(now);
  const { rows } = await tx.query<ApiKeyRow>(
    `insert into api_keys (id, project_id, name, scope, prefix, secret_hash, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8) returning ${columns}`,
    [id, projectId, name, scope, prefix, secretHash, now, expiresAt],
  );
  const key = rows[0];
  if (key === undefined) throw new Error('an inserted API key was not returned');
  return { key, value };
}

/** Newest first; revoked ones for 30 days. */
export async function listApiKeys(db: Queryable, projectId: string, now: Date): Promise<ApiKeyRow[]> {
  const { rows } = await db.query<ApiKeyRow>(
    `select ${columns} from api_keys
     where project_id = $1 and (revoked_at is null or revoked_at > $2::timestamptz - interval '30 days')
     order by created_at desc, id desc`,
    [projectId, now],
  );
  return rows;
}

/**
 * Revokes from the next request on; a revoked key stays as it is.
 * @throws ProblemError `not_found`
 */
export async function revokeApiKey(
  db: Queryable,
  input: { projectId: string; keyId: string; now: Date },
): Promise<void> {
  const { rowCount } = await db.query(
    'update api_keys set revoked_at = coalesce(revoked_at, $3) where id = $1 and project_id = $2',
    [input.keyId, input.projectId, input.now],
  );
  if (rowCount === 0) throw new ProblemError('not_found');
}

/** A key with all that a request needs to know of its project and account. */
export interface KeyHolder {
  keyId: string;
  scope: ApiKeyScope;
  secretHash: Buffer;
  expiresAt: Date | null;
  revokedAt: Date | null;
  lastUsedAt: Date | null;
  project: ProjectRow;
  plan: Plan;
  bannedAt: Date | null;
  /** The number that the account has verified is banned. */
  phoneBanned: boolean;
}

interface KeyHolderColumns extends PlanColumns, Omit<KeyHolder, 'project' | 'plan'> {
  projectId: string;
  accountId: string;
  projectName: string;
  branding: ProjectRow['branding'];
  projectCreatedAt: Date;
}

/** Who holds a key, in one look-up; null when the key or its project is gone. The caller compares the secret. */
export async function findKeyHolder(db: Queryable, keyId: string): Promise<KeyHolder | null> {
  const { rows } = await db.query<KeyHolderColumns>(
    `select k.id as "keyId", k.scope, k.secret_hash as "secretHash", k.expires_at as "expiresAt",
       k.revoked_at as "revokedAt", k.last_used_at as "lastUsedAt", p.id as "projectId",
       p.account_id as "accountId", p.name as "projectName", p.branding, p.created_at as "projectCreatedAt",
       a.banned_at as "bannedAt", ${phoneBannedColumn}, ${planColumns}
     from api_keys k
     join projects p on p.id = k.project_id and p.deleted_at is null
     join accounts a on a.id = p.account_id
     ${joinPlan}
     where k.id = $1`,
    [keyId],
    'key-holder',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { keyId: id, scope, secretHash, expiresAt, revokedAt, lastUsedAt, bannedAt, phoneBanned } = row;
  return {
    ...{ keyId: id, scope, secretHash, expiresAt, revokedAt, lastUsedAt, bannedAt, phoneBanned },
    project: {
      id: row.projectId,
      accountId: row.accountId,
      name: row.projectName,
      branding: row.branding,
      createdAt: row.projectCreatedAt,
    },
    plan: planOf(row),
  };
}

/** Notes that a key was used; never moves backwards. */
export async function touchApiKey(db: Queryable, keyId: string, now: Date): Promise<void> {
  await db.query(
    'update api_keys set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $2)',
    [keyId, now],
    'key-touch',
  );
}
