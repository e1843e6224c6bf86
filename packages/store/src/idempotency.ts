import { type Queryable, type Transaction } from './db.ts';

/** What an `Idempotency-Key` belongs to: account, method and concrete path (contract IDK-003). */
export interface IdempotencyScope {
  accountId: string;
  method: string;
  path: string;
  key: string;
}

export type IdempotencyClaim =
  /** This request runs; `claimedAt` proves it later. */
  | { kind: 'claimed'; claimedAt: Date }
  /** Its twin runs right now. */
  | { kind: 'running' }
  /** Its twin succeeded, and this was kept. */
  | { kind: 'done'; kept: unknown }
  /** The key was used with another body. */
  | { kind: 'mismatch' };

/** How long results are replayed (contract "Limits"). */
const keptMs = 24 * 3_600_000;
/** A claim older than any request may run is left over from a process that died. */
const abandonedMs = 90_000;

/** Claims the key for this request, or tells what became of its twin. */
export async function claimIdempotencyKey(
  db: Queryable,
  scope: IdempotencyScope,
  request: { bodyHash: Buffer; now: Date },
): Promise<IdempotencyClaim> {
  const { bodyHash, now } = request;
  const claimed = await db.query(
    `insert into idempotency (account_id, method, path, key, body_hash, created_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (account_id, method, path, key) do update
       set body_hash = excluded.body_hash, created_at = excluded.created_at, status = null, body = null
       where idempotency.created_at <= $7
         or (idempotency.status is null and idempotency.created_at <= $8)`,
    [...keyOf(scope), bodyHash, now, new Date(now.getTime() - keptMs), new Date(now.getTime() - abandonedMs)],
    'idempotency-claim',
  );
  if (claimed.rowCount === 1) return { kind: 'claimed', claimedAt: now };
  const { rows } = await db.query<{ bodyHash: Buffer; status: number | null; body: unknown }>(
    `select body_hash as "bodyHash", status, body from idempotency
     where account_id = $1 and method = $2 and path = $3 and key = $4`,
    keyOf(scope),
    'idempotency-find',
  );
  const twin = rows[0];
  // Released between the two statements: the caller asks again.
  if (twin === undefined) return { kind: 'running' };
  if (!twin.bodyHash.equals(bodyHash)) return { kind: 'mismatch' };
  return twin.status === null ? { kind: 'running' } : { kind: 'done', kept: twin.body };
}

/**
 * Keeps what a replay needs, in the very transaction that did the work: both happen or neither.
 * @throws Error when the claim was lost to a twin, so that the work is rolled back
 */
export async function keepIdempotentResult(
  tx: Transaction,
  scope: IdempotencyScope,
  result: { claimedAt: Date; status: number; kept: unknown },
): Promise<void> {
  const { rowCount } = await tx.query(
    `update idempotency set status = $6, body = $7
     where account_id = $1 and method = $2 and path = $3 and key = $4 and created_at = $5 and status is null`,
    [...keyOf(scope), result.claimedAt, result.status, JSON.stringify(result.kept)],
    'idempotency-keep',
  );
  if (rowCount === 0) throw new Error('an idempotency claim was lost while its request ran');
}

/** Gives an unfinished claim back: only successes are kept, so a retry runs. */
export async function releaseIdempotencyKey(
  db: Queryable,
  scope: IdempotencyScope,
  claimedAt: Date,
): Promise<void> {
  await db.query(
    `delete from idempotency
     where account_id = $1 and method = $2 and path = $3 and key = $4 and created_at = $5 and status is null`,
    [...keyOf(scope), claimedAt],
    'idempotency-release',
  );
}

const keyOf = ({ accountId, method, path, key }: IdempotencyScope): string[] => [
  accountId,
  method,
  path,
  key,
];
