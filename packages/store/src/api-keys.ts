import { type ApiKey, type ApiKeyScope, fieldProblem, ProblemError } from '@millrace/contract';
import { newApiKey } from '@millrace/domain';
import { type Queryable, type Transaction } from './db.ts';
import { count } from './plans.ts';

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

/** Notes that a key was used; never moves backwards. */
export async function touchApiKey(db: Queryable, keyId: string, now: Date): Promise<void> {
  await db.query(
    'update api_keys set last_used_at = $2 where id = $1 and (last_used_at is null or last_used_at < $2)',
    [keyId, now],
    'key-touch',
  );
}
