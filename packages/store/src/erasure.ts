import { fieldProblem, ProblemError } from '@millrace/contract';
import { writeAudit } from './audit.ts';
import { type Transaction } from './db.ts';
import { deleteEndpointsOf } from './webhook-endpoints.ts';

export interface Erasure {
  accountId: string;
  erasedAt: Date;
  /** When the last of its objects was gone; null while some are left. */
  doneAt: Date | null;
}

const columns = `id as "accountId", erased_at as "erasedAt", erasure_done_at as "doneAt"`;

/**
 * Begins to erase an account, for good: from its next request on nobody gets in, and what says who its people are is
 * gone. Its videos and their objects follow (`eraseVideos`). Safe to repeat.
 *
 * What stays, for the times of docs/retention.md: audit rows, usage sums, events and their deliveries, payment
 * providers' reports.
 * @param input.name the account's name, so that nobody erases another by a slip
 * @throws ProblemError `not_found`; `invalid_request` for another name
 */
export async function eraseAccount(
  tx: Transaction,
  input: { accountId: string; name: string; reason: string | null; actor: string },
): Promise<Erasure> {
  const { accountId, name, reason, actor } = input;
  const { rows: before } = await tx.query<{ name: string; erasedAt: Date | null }>(
    `select name, erased_at as "erasedAt" from accounts where id = $1 for update`,
    [accountId],
  );
  const [account] = before;
  if (account === undefined) throw new ProblemError('not_found');
  if (account.erasedAt === null) {
    if (account.name !== name)
      throw fieldProblem('invalid_request', 'name', 'is not the name of the account');
    await tx.query('update accounts set erased_at = clock_timestamp() where id = $1', [accountId]);
    await eraseSettings(tx, [accountId]);
    await writeAudit(tx, { actor, action: 'account.erase', subject: accountId, details: { reason } });
  }
  const { rows } = await tx.query<Erasure>(`select ${columns} from accounts where id = $1`, [accountId]);
  const [erasure] = rows;
  if (erasure === undefined) throw new Error('an account that was locked is gone');
  return erasure;
}

/**
 * Erases all of accounts but their videos. Repeated until their erasure is done, since requests that were admitted before
 * it began may still write; it writes only where something is left.
 */
export async function eraseSettings(tx: Transaction, accountIds: readonly string[]): Promise<void> {
  await erasePeople(tx, accountIds);
  await eraseProjects(tx, accountIds);
}

async function erasePeople(tx: Transaction, accountIds: readonly string[]): Promise<void> {
  await tx.query(
    `update accounts set updated_at = clock_timestamp(), name = 'Erased account',
       banned_at = coalesce(banned_at, clock_timestamp()), ban_reason = 'erased', ban_holds_videos = true,
       phone_hash = null, phone_verified_at = null
     where id = any($1) and (name <> 'Erased account' or banned_at is null or ban_reason is distinct from 'erased'
       or not ban_holds_videos or phone_hash is not null or phone_verified_at is not null)`,
    [accountIds],
  );
  await tx.query(`delete from sessions where user_id in (select id from users where account_id = any($1))`, [
    accountIds,
  ]);
  // The rows stay, since others name them; the address is nobody's.
  await tx.query(
    `update users set email = id || '@erased.invalid', display_name = 'Erased', issuer = null, subject = null
     where account_id = any($1) and (email <> id || '@erased.invalid' or display_name <> 'Erased'
       or issuer is not null or subject is not null)`,
    [accountIds],
  );
  for (const table of ['phone_challenges', 'whitelist', 'reports', 'idempotency'])
    await tx.query(`delete from ${table} where account_id = any($1)`, [accountIds]);
}

async function eraseProjects(tx: Transaction, accountIds: readonly string[]): Promise<void> {
  const ofAccounts = 'project_id in (select id from projects where account_id = any($1))';
  const { rows: listening } = await tx.query<{ projectId: string }>(
    `select distinct project_id as "projectId" from webhook_endpoints where ${ofAccounts} and deleted_at is null`,
    [accountIds],
  );
  for (const { projectId } of listening) await deleteEndpointsOf(tx, projectId);
  const nowhere = 'https://erased.invalid/';
  await tx.query(`update webhook_endpoints set url = $2 where ${ofAccounts} and url <> $2`, [
    ...[accountIds, nowhere],
  ]);
  await tx.query(`delete from api_keys where ${ofAccounts}`, [accountIds]);
  await tx.query('delete from domains where account_id = any($1)', [accountIds]);
  await tx.query(
    `update projects set name = 'Erased', branding = '{}', version = version + 1, updated_at = clock_timestamp(),
       deleted_at = coalesce(deleted_at, clock_timestamp())
     where account_id = any($1) and (name <> 'Erased' or branding <> '{}' or deleted_at is null)`,
    [accountIds],
  );
}
