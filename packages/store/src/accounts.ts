import {
  type Account,
  fieldProblem,
  type PlanStatus,
  ProblemError,
  type User,
  type UserRole,
} from '@millrace/contract';
import { newId } from '@millrace/domain';
import { writeAudit } from './audit.ts';
import { isUniqueViolation, type Queryable, type Transaction } from './db.ts';
import { publishAccountState } from './playback-state.ts';
import { lockUsage } from './usage.ts';

export interface AccountRow {
  id: string;
  name: string;
  planId: string;
  planStatus: PlanStatus;
  createdAt: Date;
  bannedAt: Date | null;
  phoneVerifiedAt: Date | null;
}

export interface UserRow {
  id: string;
  accountId: string;
  role: UserRole;
  email: string;
  displayName: string;
}

const columns = `id, name, plan_id as "planId", plan_status as "planStatus", created_at as "createdAt",
  banned_at as "bannedAt", phone_verified_at as "phoneVerifiedAt"`;

/** The Account resource (contract "Account"). Phone verification is not enforced in this version. */
export const accountResource = (row: AccountRow): Account => ({
  id: row.id,
  name: row.name,
  planId: row.planId,
  planStatus: row.planStatus,
  createdAt: row.createdAt.toISOString(),
  phoneVerified: row.phoneVerifiedAt !== null,
  phoneVerificationRequired: false,
});

export const userResource = ({ id, role, email, displayName }: UserRow): User => ({
  id,
  role,
  email,
  displayName,
});

/** null when there is none. */
export async function findAccount(db: Queryable, accountId: string): Promise<AccountRow | null> {
  const { rows } = await db.query<AccountRow>(
    `select ${columns} from accounts where id = $1`,
    [accountId],
    'account-find',
  );
  return rows[0] ?? null;
}

/** null when there is none. */
export async function findUser(db: Queryable, userId: string): Promise<UserRow | null> {
  const { rows } = await db.query<UserRow>(
    `select id, account_id as "accountId", role, email, display_name as "displayName"
     from users where id = $1`,
    [userId],
    'user-find',
  );
  return rows[0] ?? null;
}

/**
 * A new active account with its first user, the owner. Its usage period begins on today's day of the month.
 * @throws ProblemError `invalid_request` for an unknown plan or an e-mail that another user has
 */
export async function createAccount(
  tx: Transaction,
  input: { name: string; email: string; planId: string; now: Date },
): Promise<{ account: AccountRow; user: UserRow }> {
  const { name, email, planId, now } = input;
  await assertPlan(tx, planId);
  const { rows } = await tx.query<AccountRow>(
    `insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $5) returning ${columns}`,
    [newId('acc', now), name, planId, now.getUTCDate(), now],
  );
  const account = rows[0];
  if (account === undefined) throw new Error('an inserted account was not returned');
  const user: UserRow = {
    id: newId('usr', now),
    accountId: account.id,
    role: 'owner',
    email,
    displayName: name,
  };
  await tx
    .query(
      `insert into users (id, account_id, role, email, display_name, created_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [user.id, user.accountId, user.role, user.email, user.displayName, now],
    )
    .catch((error: unknown) => {
      if (!isUniqueViolation(error, 'users_email')) throw error;
      throw fieldProblem('invalid_request', 'email', 'belongs to another user');
    });
  await lockUsage(tx, account.id);
  return { account, user };
}

/**
 * Puts an account on a plan; the CDN hears of it at once. Nothing that exists is removed.
 * @throws ProblemError `not_found` for an unknown account, `invalid_request` for an unknown plan
 */
export async function setPlan(
  tx: Transaction,
  input: { accountId: string; planId: string; planStatus?: PlanStatus; actor: string },
): Promise<AccountRow> {
  const { accountId, planId, planStatus = 'active', actor } = input;
  await assertPlan(tx, planId);
  const { rows } = await tx.query<AccountRow>(
    // Of a plan that changes right now it may be told the limits of before: it counts as told of none.
    `update accounts set plan_id = $2, plan_status = $3, plan_revision = -1, updated_at = clock_timestamp()
     where id = $1 returning ${columns}`,
    [accountId, planId, planStatus],
  );
  const account = rows[0];
  if (account === undefined) throw new ProblemError('not_found');
  await publishAccountState(tx, accountId);
  await writeAudit(tx, {
    actor,
    action: 'account.plan',
    subject: accountId,
    details: { planId, planStatus },
  });
  return account;
}

/**
 * Bans an account or lifts its ban, from its next request on. Playback goes on, unless the ban holds the videos:
 * the reconciler does. A second ban keeps the first one's time and takes the rest of the new one.
 * An erased account is banned for good: a ban changes nothing.
 * @throws ProblemError `not_found`, also when the ban of an erased account is to be lifted
 */
export async function banAccount(
  tx: Transaction,
  input: { accountId: string; banned: boolean; reason?: string; holdVideos?: boolean; actor: string },
): Promise<AccountRow> {
  const { accountId, banned, reason = null, holdVideos = false, actor } = input;
  const { rows } = await tx.query<AccountRow>(
    `update accounts set banned_at = case when $2 then coalesce(banned_at, clock_timestamp()) end,
       ban_reason = case when $2 then $3 end, ban_holds_videos = $2 and $4, updated_at = clock_timestamp()
     where id = $1 and erased_at is null returning ${columns}`,
    [accountId, banned, reason, holdVideos],
  );
  const account = rows[0];
  if (account === undefined) {
    const erased = banned ? await findAccount(tx, accountId) : null;
    if (erased === null) throw new ProblemError('not_found');
    return erased;
  }
  const action = banned ? 'account.ban' : 'account.unban';
  await writeAudit(tx, { actor, action, subject: accountId, details: { reason, holdVideos } });
  return account;
}

async function assertPlan(db: Queryable, planId: string): Promise<void> {
  const { rows } = await db.query('select 1 from plans where id = $1', [planId]);
  if (rows.length === 0) throw fieldProblem('invalid_request', 'plan', 'is not a plan');
}
