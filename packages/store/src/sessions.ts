import { ProblemError } from '@millrace/contract';
import { hashOf, newSessionId, sessionExpiry } from '@millrace/domain';
import { phoneBannedColumn } from './bans.ts';
import { type Queryable, type Transaction } from './db.ts';
import { joinPlan, type Plan, planColumns, type PlanColumns, planOf } from './plans.ts';

/** A live session with all that a request needs to know of its user and account. */
export interface SessionHolder {
  sessionHash: Buffer;
  userId: string;
  accountId: string;
  createdAt: Date;
  lastSeenAt: Date;
  plan: Plan;
  bannedAt: Date | null;
  /** The number that the account has verified is banned. */
  phoneBanned: boolean;
}

/** A new session of a user; the cookie's value is known only now. @throws ProblemError `not_found` */
export async function createSession(
  tx: Transaction,
  input: { userId: string; now: Date },
): Promise<{ cookie: string }> {
  const { userId, now } = input;
  const { rowCount } = await tx.query('select 1 from users where id = $1', [userId]);
  if (rowCount === 0) throw new ProblemError('not_found');
  const cookie = newSessionId();
  await tx.query(
    `insert into sessions (id_hash, user_id, created_at, last_seen_at, expires_at) values ($1, $2, $3, $3, $4)`,
    [hashOf(cookie), userId, now, sessionExpiry(now, now)],
  );
  return { cookie };
}

/** The session of a cookie's value; null when it is unknown, ended or expired. */
export async function findSessionHolder(
  db: Queryable,
  cookie: string,
  now: Date,
): Promise<SessionHolder | null> {
  const { rows } = await db.query<Omit<SessionHolder, 'plan'> & PlanColumns>(
    `select s.id_hash as "sessionHash", s.user_id as "userId", u.account_id as "accountId",
       s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", a.banned_at as "bannedAt",
       ${phoneBannedColumn}, ${planColumns}
     from sessions s
     join users u on u.id = s.user_id
     join accounts a on a.id = u.account_id
     ${joinPlan}
     where s.id_hash = $1 and s.expires_at > $2`,
    [hashOf(cookie), now],
    'session-holder',
  );
  const row = rows[0];
  if (row === undefined) return null;
  const { sessionHash, userId, accountId, createdAt, lastSeenAt, bannedAt, phoneBanned } = row;
  return {
    ...{ sessionHash, userId, accountId, createdAt, lastSeenAt, bannedAt, phoneBanned },
    plan: planOf(row),
  };
}

/** Ends the session of a cookie's value; an unknown one has ended already. */
export async function deleteSession(db: Queryable, cookie: string): Promise<void> {
  await db.query('delete from sessions where id_hash = $1', [hashOf(cookie)]);
}

/** Notes that a session was used, which moves its end; never backwards. */
export async function touchSession(
  db: Queryable,
  session: Pick<SessionHolder, 'sessionHash' | 'createdAt'>,
  now: Date,
): Promise<void> {
  await db.query(
    `update sessions set last_seen_at = $2, expires_at = $3 where id_hash = $1 and last_seen_at < $2`,
    [session.sessionHash, now, sessionExpiry(session.createdAt, now)],
    'session-touch',
  );
}
