import { ProblemError } from '@millrace/contract';
import { createAccount } from './accounts.ts';
import { phoneBannedColumn } from './bans.ts';
import { type Transaction } from './db.ts';

/** Who an identity provider says is there. */
export interface Identity {
  issuer: string;
  subject: string;
  /** null when the provider did not verify one. */
  email: string | null;
  displayName: string;
}

/** Why an identity that was proved may not come in. */
export class IdentityRefusedError extends Error {
  override readonly name = 'IdentityRefusedError';
  readonly code: 'no_email' | 'email_taken';
  constructor(code: IdentityRefusedError['code']) {
    super(code === 'no_email' ? 'there is no verified e-mail' : 'another user has the e-mail');
    this.code = code;
  }
}

/**
 * The user of an identity, made with a free account at the first sign-in. Issuer and subject alone say who it is: an
 * e-mail never leads to a user that is there (contract SSO-210).
 * @throws IdentityRefusedError; ProblemError `account_banned`, `banned`
 */
export async function userOfIdentity(
  tx: Transaction,
  identity: Identity,
  now: Date,
): Promise<{ userId: string; accountId: string; created: boolean }> {
  const { issuer, subject, email, displayName } = identity;
  // Two first sign-ins of one person at once make one user.
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `identity:${JSON.stringify([issuer, subject])}`,
  ]);
  const known = await findIdentity(tx, issuer, subject);
  if (known !== null) return { ...known, created: false };
  if (email === null) throw new IdentityRefusedError('no_email');
  const { account, user } = await createAccount(tx, { name: displayName, email, planId: 'free', now }).catch(
    (error: unknown) => {
      // Of what is given here only the e-mail can be refused.
      if (error instanceof ProblemError && error.code === 'invalid_request')
        throw new IdentityRefusedError('email_taken');
      throw error;
    },
  );
  await tx.query('update users set issuer = $2, subject = $3 where id = $1', [user.id, issuer, subject]);
  return { userId: user.id, accountId: account.id, created: true };
}

async function findIdentity(
  tx: Transaction,
  issuer: string,
  subject: string,
): Promise<{ userId: string; accountId: string } | null> {
  const { rows } = await tx.query<{
    userId: string;
    accountId: string;
    bannedAt: Date | null;
    phoneBanned: boolean;
  }>(
    `select u.id as "userId", u.account_id as "accountId", a.banned_at as "bannedAt", ${phoneBannedColumn}
     from users u join accounts a on a.id = u.account_id where u.issuer = $1 and u.subject = $2`,
    [issuer, subject],
  );
  const row = rows[0];
  if (row === undefined) return null;
  if (row.bannedAt !== null) throw new ProblemError('account_banned');
  if (row.phoneBanned) throw new ProblemError('banned');
  return { userId: row.userId, accountId: row.accountId };
}
