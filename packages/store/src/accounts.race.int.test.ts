import { describe, expect, it } from '@jest/globals';
import { race, raceRounds, seedAccount } from '@millrace/testing';
import { openChallenge, reserveChallenge, tryPhoneCode, userOfIdentity } from './index.ts';
import { db, useDatabase } from './testing/database.ts';

/** One person does the same thing in several places at once: each race runs 200 times. */

const now = new Date();
useDatabase();

describe('verify against verify of a phone', () => {
  const hash = (text: string): Buffer => Buffer.from(text.padEnd(32, '.'));
  /** An open challenge whose code is right, or wrong. */
  async function challenge(): Promise<{
    try(fits: boolean): () => Promise<unknown>;
    reset(wrong: number): Promise<unknown>;
  }> {
    const { accountId } = await seedAccount(db);
    const reserved = { accountId, phoneHashes: [hash(accountId)], codeHashOf: hash, now };
    const { id: challengeId } = await reserveChallenge(db, reserved);
    await openChallenge(db, { accountId, challengeId, now });
    return {
      try: (fits) => () => tryPhoneCode(db, { accountId, challengeId, fits: () => fits, now }),
      reset: (wrong) =>
        db.query('update phone_challenges set closed_at = null, wrong_codes = $2 where id = $1', [
          challengeId,
          wrong,
        ]),
    };
  }

  it('takes the right code once, 200 times [PHN-216]', async () => {
    const open = await challenge();
    for (let round = 0; round < raceRounds; round++) {
      await open.reset(0);
      const outcomes = await race([open.try(true), open.try(true), open.try(true)]);
      expect(outcomes.sort()).toEqual(['challenge_not_found', 'challenge_not_found', 'ok']);
    }
  });

  it('counts every wrong code, 200 times: after five none is looked at [PHN-217, PHN-218]', async () => {
    const open = await challenge();
    for (let round = 0; round < raceRounds; round++) {
      await open.reset(3);
      const outcomes = await race([open.try(false), open.try(false), open.try(false), open.try(false)]);
      expect(outcomes.sort()).toEqual([
        ...['invalid_code', 'invalid_code', 'too_many_attempts', 'too_many_attempts'],
      ]);
    }
  });
});

describe('a first sign-in against itself', () => {
  it('makes one user and one account, 200 times [SSO-213]', async () => {
    for (let round = 0; round < raceRounds; round++) {
      const identity = {
        ...{ issuer: 'https://idp.example.com', subject: `s${round}`, displayName: 'New' },
        email: `s${round}@example.com`,
      };
      const users = new Set<string>();
      const signIn = async (): Promise<string> => {
        const { userId, created } = await db.transaction((tx) => userOfIdentity(tx, identity, now));
        users.add(userId);
        return created ? 'created' : 'known';
      };
      expect((await race([signIn, signIn, signIn])).sort()).toEqual(['created', 'known', 'known']);
      expect(users.size).toBe(1);
    }
  });
});
