import { fieldProblem, ProblemError } from '@millrace/contract';
import { writeAudit } from './audit.ts';
import { type Database, type Transaction } from './db.ts';
import { moveVideo } from './video-moves.ts';
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
 * providers' reports; none says more of a person than an id.
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
    await erasePeople(tx, accountId);
    await eraseSettings(tx, accountId);
    await writeAudit(tx, { actor, action: 'account.erase', subject: accountId, details: { reason } });
  }
  const { rows } = await tx.query<Erasure>(`select ${columns} from accounts where id = $1`, [accountId]);
  const [erasure] = rows;
  if (erasure === undefined) throw new Error('an account that was locked is gone');
  return erasure;
}

async function erasePeople(tx: Transaction, accountId: string): Promise<void> {
  await tx.query(
    `update accounts set erased_at = clock_timestamp(), updated_at = clock_timestamp(), name = 'Erased account',
       banned_at = coalesce(banned_at, clock_timestamp()), ban_reason = 'erased', ban_holds_videos = false,
       phone_hash = null, phone_verified_at = null
     where id = $1`,
    [accountId],
  );
  await tx.query(`delete from sessions where user_id in (select id from users where account_id = $1)`, [
    accountId,
  ]);
  // The rows stay, since others name them; the address is nobody's.
  await tx.query(
    `update users set email = id || '@erased.invalid', display_name = 'Erased', issuer = null, subject = null
     where account_id = $1`,
    [accountId],
  );
  for (const table of ['phone_challenges', 'whitelist', 'reports', 'idempotency'])
    await tx.query(`delete from ${table} where account_id = $1`, [accountId]);
}

async function eraseSettings(tx: Transaction, accountId: string): Promise<void> {
  const { rows: projects } = await tx.query<{ id: string }>('select id from projects where account_id = $1', [
    accountId,
  ]);
  for (const { id } of projects) await deleteEndpointsOf(tx, id);
  const ofAccount = 'project_id in (select id from projects where account_id = $1)';
  await tx.query(`update webhook_endpoints set url = 'https://erased.invalid/' where ${ofAccount}`, [
    accountId,
  ]);
  await tx.query(`delete from api_keys where ${ofAccount}`, [accountId]);
  await tx.query('delete from domains where account_id = $1', [accountId]);
  await tx.query(
    `update projects set name = 'Erased', branding = '{}', version = version + 1, updated_at = clock_timestamp(),
       deleted_at = coalesce(deleted_at, clock_timestamp())
     where account_id = $1`,
    [accountId],
  );
}

/**
 * Deletes videos of erased accounts, some at a time, and forgets what they were called; their objects go as those of any
 * deleted video. Under a legal hold both stay until it is lifted. Closes erasures of which no object is left.
 * @returns how many videos were deleted or forgotten, and erasures closed
 */
export async function eraseVideos(db: Database, limit = 200): Promise<number> {
  const erasing =
    'account_id in (select id from accounts where erased_at is not null and erasure_done_at is null)';
  const { rows: alive } = await db.query<{ id: string }>(
    `select id from videos where ${erasing} and deleted_at is null limit $1`,
    [limit],
    'erasure-alive',
  );
  for (const { id } of alive) {
    await db
      .transaction((tx) => moveVideo(tx, id, { type: 'customer_delete' }, { deletedBy: 'erasure' }))
      .catch((error: unknown) => {
        // Somebody else deleted it meanwhile.
        if (!(error instanceof ProblemError && error.code === 'not_found')) throw error;
      });
  }
  const { rowCount: forgotten } = await db.query(
    `with gone as (
       select id from videos v where ${erasing} and deleted_at is not null and title <> '' and not exists (
         select from video_holds h where h.video_id = v.id and h.legal and h.lifted_at is null)
       limit $1
     ), jobs as (
       update encode_jobs set manifest = null, report = '{}' where video_id in (select id from gone)
     )
     update videos set title = '', failure_message = case when failure_code is not null then '' end
     where id in (select id from gone)`,
    [limit],
    'erasure-forget',
  );
  return alive.length + forgotten + (await closeErasures(db));
}

const closeErasures = (db: Database): Promise<number> =>
  db.transaction(async (tx) => {
    const { rows } = await tx.query<{ id: string }>(
      `update accounts a set erasure_done_at = clock_timestamp()
       where erased_at is not null and erasure_done_at is null and not exists (
         select from videos v where v.account_id = a.id and (v.deleted_at is null or v.purged_at is null or title <> ''))
       returning id`,
    );
    for (const { id } of rows)
      await writeAudit(tx, { actor: 'reconciler', action: 'account.erased', subject: id });
    return rows.length;
  });
