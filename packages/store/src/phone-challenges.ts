import { ProblemError } from '@millrace/contract';
import { newId } from '@millrace/domain';
import { type AccountRow, findAccount } from './accounts.ts';
import { isPhoneBanned } from './bans.ts';
import { type Database, type Transaction } from './db.ts';

/** Of an account, and of a number (contract "Limits"). */
const codesPerHour = 5;
const maximumWrongCodes = 5;
const hourMs = 3_600_000;
const lifeMs = 600_000;

export interface PhoneChallengeRow {
  id: string;
  expiresAt: Date;
}

/**
 * Puts a challenge on record before its message is sent, so that a burst of starts cannot pass the limits. It proves
 * nothing until `openChallenge`.
 * @param input.phoneHashes of the one number, under every key of the set; the first is stored
 * @param input.codeHashOf hash of the code for a challenge's id
 * @throws ProblemError `banned`, `phone_rate_limited`
 */
export async function reserveChallenge(
  store: Database,
  input: {
    accountId: string;
    phoneHashes: readonly Buffer[];
    codeHashOf: (challengeId: string) => Buffer;
    now: Date;
  },
): Promise<PhoneChallengeRow> {
  const { accountId, phoneHashes, codeHashOf, now } = input;
  const id = newId('phc', now);
  const expiresAt = new Date(now.getTime() + lifeMs);
  const since = new Date(now.getTime() - hourMs);
  return store.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await lockNumber(tx, phoneHashes);
    if (await isPhoneBanned(tx, phoneHashes)) throw new ProblemError('banned');
    const ofAccount = await sentSince(tx, 'account_id = $2', [since, accountId]);
    const ofNumber = await sentSince(tx, 'phone_hash = any($2::bytea[])', [since, phoneHashes]);
    const full = [ofAccount, ofNumber].filter((sent) => sent.length >= codesPerHour);
    if (full.length > 0) {
      // The oldest has to leave the hour, for the account and for the number.
      const oldest = Math.max(...full.map(([first]) => first?.getTime() ?? 0));
      throw new ProblemError('phone_rate_limited', {
        detail: `At most ${codesPerHour} codes an hour are sent for an account and for a number.`,
        retryAfter: (oldest + hourMs - now.getTime()) / 1000,
      });
    }
    // What no limit counts any more and no code opens.
    await tx.query('delete from phone_challenges where account_id = $1 and created_at <= $2', [
      accountId,
      since,
    ]);
    await tx.query(
      `insert into phone_challenges (id, account_id, phone_hash, code_hash, created_at, expires_at)
       values ($1, $2, $3, $4, $5, $6)`,
      [id, accountId, phoneHashes[0], codeHashOf(id), now, expiresAt],
    );
    return { id, expiresAt };
  });
}

/** When the codes of an account or a number were sent, the oldest first; `where` begins at `$2`. */
async function sentSince(tx: Transaction, where: string, values: readonly unknown[]): Promise<Date[]> {
  const { rows } = await tx.query<{ at: Date }>(
    `select created_at as at from phone_challenges where created_at > $1 and ${where} order by created_at`,
    values,
  );
  return rows.map(({ at }) => at);
}

/** The message is out: the challenge is the account's only open one from now on. */
export async function openChallenge(
  store: Database,
  { accountId, challengeId, now }: { accountId: string; challengeId: string; now: Date },
): Promise<void> {
  await store.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    await tx.query(
      'update phone_challenges set closed_at = $3 where account_id = $1 and id <> $2 and closed_at is null and sent_at is not null',
      [accountId, challengeId, now],
    );
    await tx.query('update phone_challenges set sent_at = $2 where id = $1', [challengeId, now]);
  });
}

/** The message could not be sent: nothing is left of the challenge, and it counts against no limit. */
export async function dropChallenge(store: Database, challengeId: string): Promise<void> {
  await store.query('delete from phone_challenges where id = $1 and sent_at is null', [challengeId]);
}

/**
 * Tries a code (contract "POST /v1/me/phone/verify"): the right one closes the challenge and verifies the account.
 * @param input.fits whether the code has this hash for this challenge
 * @throws ProblemError `challenge_not_found`, `banned`, `code_expired`, `too_many_attempts`, `invalid_code`
 */
export async function tryPhoneCode(
  store: Database,
  input: { accountId: string; challengeId: string; fits: (codeHash: Buffer) => boolean; now: Date },
): Promise<AccountRow> {
  // A wrong code is counted, so it must not be thrown out of the transaction.
  const outcome = await store.transaction((tx) => tryCode(tx, input));
  if (outcome === 'wrong') throw new ProblemError('invalid_code');
  return outcome;
}

async function tryCode(
  tx: Transaction,
  { accountId, challengeId, fits, now }: Parameters<typeof tryPhoneCode>[1],
): Promise<AccountRow | 'wrong'> {
  const { rows } = await tx.query<{
    phoneHash: Buffer;
    codeHash: Buffer;
    expiresAt: Date;
    wrongCodes: number;
  }>(
    `select phone_hash as "phoneHash", code_hash as "codeHash", expires_at as "expiresAt",
       wrong_codes as "wrongCodes"
     from phone_challenges
     where id = $1 and account_id = $2 and sent_at is not null and closed_at is null for update`,
    [challengeId, accountId],
  );
  const challenge = rows[0];
  if (challenge === undefined) throw new ProblemError('challenge_not_found');
  const { phoneHash, codeHash, expiresAt, wrongCodes } = challenge;
  if (await isPhoneBanned(tx, [phoneHash])) throw new ProblemError('banned');
  if (expiresAt <= now) throw new ProblemError('code_expired');
  if (wrongCodes >= maximumWrongCodes) throw new ProblemError('too_many_attempts');
  if (!fits(codeHash)) {
    await tx.query('update phone_challenges set wrong_codes = wrong_codes + 1 where id = $1', [challengeId]);
    return 'wrong';
  }
  await tx.query('update phone_challenges set closed_at = $2 where id = $1', [challengeId, now]);
  await tx.query(
    'update accounts set phone_verified_at = $2, phone_hash = $3, updated_at = $2 where id = $1',
    [accountId, now, phoneHash],
  );
  const account = await findAccount(tx, accountId);
  if (account === null) throw new Error(`the account of a challenge is gone: ${accountId}`);
  return account;
}

const lockAccount = async (tx: Transaction, accountId: string): Promise<void> => {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`phone:${accountId}`]);
};

/** After the account's lock, always: two starts never wait for each other. */
const lockNumber = async (tx: Transaction, phoneHashes: readonly Buffer[]): Promise<void> => {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `number:${phoneHashes.map((hash) => hash.toString('hex')).join()}`,
  ]);
};
