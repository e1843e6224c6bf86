import { type Domain, type DomainStatus, ProblemError } from '@millrace/contract';
import { decideDomain, newId, type RecordSeen } from '@millrace/domain';
import { randomBytes } from 'node:crypto';
import { isUniqueViolation, type Queryable, type Transaction } from './db.ts';
import { assertBelow, count, planOfAccount } from './plans.ts';
import { lockUsage } from './usage.ts';

export interface DomainRow {
  id: string;
  projectId: string;
  accountId: string;
  /** Lower-case punycode without a final dot. */
  hostname: string;
  status: DomainStatus;
  /** Hex part of the record's value. */
  challenge: string;
  createdAt: Date;
  verifiedAt: Date | null;
  lastCheckAt: Date | null;
  lastCheckFound: string[] | null;
  missingSince: Date | null;
}

const columns = `id, project_id as "projectId", account_id as "accountId", hostname, status, challenge,
  created_at as "createdAt", verified_at as "verifiedAt", last_check_at as "lastCheckAt",
  last_check_found as "lastCheckFound", missing_since as "missingSince"`;

/** Names waiting for their record cost little, but not nothing. */
const maximumUnverified = 100;

/** Name and value of the TXT record that proves a domain (contract "Domain"). */
export const verificationRecord = (
  row: Pick<DomainRow, 'hostname' | 'challenge'>,
): { type: 'TXT'; name: string; value: string } => ({
  type: 'TXT',
  name: `_svc-verify.${row.hostname}`,
  value: `svc-verify=${row.challenge}`,
});

export const domainResource = (row: DomainRow): Domain => ({
  id: row.id,
  hostname: row.hostname,
  status: row.status,
  verification: verificationRecord(row),
  createdAt: row.createdAt.toISOString(),
  verifiedAt: row.verifiedAt?.toISOString() ?? null,
  lastCheck:
    row.lastCheckAt === null ? null : { at: row.lastCheckAt.toISOString(), found: row.lastCheckFound ?? [] },
});

/** Newest first. */
export async function listDomains(db: Queryable, projectId: string): Promise<DomainRow[]> {
  const { rows } = await db.query<DomainRow>(
    `select ${columns} from domains where project_id = $1 order by created_at desc, id desc`,
    [projectId],
    'domains-list',
  );
  return rows;
}

/** null when the project has none of this id. */
export async function findDomain(
  db: Queryable,
  projectId: string,
  domainId: string,
): Promise<DomainRow | null> {
  const { rows } = await db.query<DomainRow>(
    `select ${columns} from domains where id = $1 and project_id = $2`,
    [domainId, projectId],
    'domain-find',
  );
  return rows[0] ?? null;
}

/** Whether tokens may be made for this name: it is verified on this project, now. */
export async function isVerifiedDomain(db: Queryable, projectId: string, hostname: string): Promise<boolean> {
  const { rows } = await db.query(
    `select 1 from domains where project_id = $1 and hostname = $2 and status = 'verified'`,
    [projectId, hostname],
    'domain-verified',
  );
  return rows.length > 0;
}

/**
 * A new domain, waiting for its record; or verified at once, on the operator's word.
 * @throws ProblemError `plan_limit_reached`; `hostname_taken` when this account has it in any state or another
 *   has it verified
 */
export async function addDomain(
  tx: Transaction,
  input: { accountId: string; projectId: string; hostname: string; verified?: boolean; now: Date },
): Promise<DomainRow> {
  const { accountId, projectId, hostname, verified = false, now } = input;
  await lockUsage(tx, accountId);
  const alive = await tx.query('select 1 from projects where id = $1 and deleted_at is null', [projectId]);
  if (alive.rowCount === 0) throw new ProblemError('not_found');
  await assertVerifiedBelowLimit(tx, accountId);
  const waiting = await count(
    tx,
    `select count(*) from domains where project_id = $1 and status <> 'verified'`,
    [projectId],
  );
  if (waiting >= maximumUnverified) {
    throw new ProblemError('plan_limit_reached', {
      detail: `A project has at most ${maximumUnverified} domains that are not verified.`,
    });
  }
  const elsewhere = await tx.query(
    `select 1 from domains where hostname = $1 and (account_id = $2 or status = 'verified')`,
    [hostname, accountId],
  );
  if (elsewhere.rowCount > 0) throw new ProblemError('hostname_taken');
  const { rows } = await tx
    .query<DomainRow>(
      `insert into domains (id, project_id, account_id, hostname, status, challenge, created_at, verified_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8) returning ${columns}`,
      [
        newId('dom', now),
        projectId,
        accountId,
        hostname,
        verified ? 'verified' : 'pending',
        randomBytes(16).toString('hex'),
        now,
        verified ? now : null,
      ],
    )
    .catch(asTaken);
  const row = rows[0];
  if (row === undefined) throw new Error('an inserted domain was not returned');
  return row;
}

/**
 * Writes down what a look-up found and moves the domain by it. Of two accounts that prove one name at the same
 * time the unique index takes one; the other's row keeps its state.
 * @throws ProblemError `not_found` when it was removed meanwhile, `plan_limit_reached`, `hostname_taken`
 */
export async function recordDomainCheck(
  tx: Transaction,
  input: {
    accountId: string;
    domainId: string;
    by: 'customer' | 'daily';
    seen: RecordSeen;
    found: readonly string[];
    at: Date;
  },
): Promise<DomainRow> {
  const { accountId, domainId, by, seen, found, at } = input;
  await lockUsage(tx, accountId);
  const { rows } = await tx.query<DomainRow>(`select ${columns} from domains where id = $1 for update`, [
    domainId,
  ]);
  const before = rows[0];
  if (before === undefined) throw new ProblemError('not_found');
  const after = decideDomain(before, { by, seen, at });
  const verifies = after.status === 'verified' && before.status !== 'verified';
  if (verifies) await assertVerifiedBelowLimit(tx, accountId);
  const updated = await tx
    .query<DomainRow>(
      `update domains set status = $2, missing_since = $3, last_check_at = $4, last_check_found = $5,
         verified_at = case when $6 then $4 else verified_at end
       where id = $1 returning ${columns}`,
      [domainId, after.status, after.missingSince, at, [...found], verifies],
    )
    .catch(asTaken);
  const row = updated.rows[0];
  if (row === undefined) throw new Error('a locked domain was not updated');
  return row;
}

/** Writes down what a look-up found when its move was refused, so that the next read still tells it. */
export async function noteDomainCheck(
  db: Queryable,
  input: { domainId: string; found: readonly string[]; at: Date },
): Promise<void> {
  await db.query('update domains set last_check_at = $2, last_check_found = $3 where id = $1', [
    input.domainId,
    input.at,
    [...input.found],
  ]);
}

/** Verified domains that were not looked up for a day, those that wait the longest first; for the daily check. */
export async function domainsToCheck(db: Queryable, now: Date, limit: number): Promise<DomainRow[]> {
  const { rows } = await db.query<DomainRow>(
    `select ${columns} from domains
     where status = 'verified' and coalesce(last_check_at, verified_at) <= $1::timestamptz - interval '1 day'
     order by coalesce(last_check_at, verified_at) limit $2`,
    [now, limit],
    'domains-to-check',
  );
  return rows;
}

/** @throws ProblemError `not_found` */
export async function removeDomain(db: Queryable, projectId: string, domainId: string): Promise<void> {
  const { rowCount } = await db.query('delete from domains where id = $1 and project_id = $2', [
    domainId,
    projectId,
  ]);
  if (rowCount === 0) throw new ProblemError('not_found');
}

/** Under the account's lock: how many are verified on all of its projects. */
async function assertVerifiedBelowLimit(tx: Transaction, accountId: string): Promise<void> {
  const plan = await planOfAccount(tx, accountId);
  const used = await count(tx, `select count(*) from domains where account_id = $1 and status = 'verified'`, [
    accountId,
  ]);
  assertBelow(plan.verifiedDomains, used, 'verified domains');
}

function asTaken(error: unknown): never {
  if (isUniqueViolation(error)) throw new ProblemError('hostname_taken', { cause: error });
  throw error;
}
