import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { race, raceRounds, seedAccount, type SeededAccount } from '@millrace/testing';
import { addDomain, recordDomainCheck, removeDomain } from './index.ts';
import { db, useDatabase } from './testing/database.ts';

/** Several accounts prove one name at the same time: each race runs 200 times. */

const hostname = 'contested.example.com';
const now = new Date();
let accounts: SeededAccount[];
useDatabase();
beforeAll(async () => {
  accounts = [await seedAccount(db), await seedAccount(db), await seedAccount(db)];
});
beforeEach(() => db.query('delete from domains'));

const add = (account: SeededAccount, verified = false) =>
  db.transaction((tx) => addDomain(tx, { ...account, hostname, verified, now }));
const verify =
  (domainId: string, { accountId }: SeededAccount) =>
  () =>
    db.transaction((tx) =>
      recordDomainCheck(tx, { accountId, domainId, by: 'customer', seen: 'present', found: [], at: now }),
    );
const statuses = async (): Promise<string[]> => {
  const { rows } = await db.query<{ status: string }>('select status from domains order by status');
  return rows.map(({ status }) => status);
};

describe('verify against verify', () => {
  it('of three accounts, 200 times: one has the name, the others hear that it is taken [DOM-208]', async () => {
    const verifies: ReturnType<typeof verify>[] = [];
    for (const account of accounts) verifies.push(verify((await add(account)).id, account));
    for (let round = 0; round < raceRounds; round++) {
      expect((await race(verifies)).sort()).toEqual(['hostname_taken', 'hostname_taken', 'ok']);
      expect(await statuses()).toEqual(['pending', 'pending', 'verified']);
      await db.query(`update domains set status = 'pending', verified_at = null`);
    }
  });

  it('of one account, 200 times: all see it verified', async () => {
    const [mine] = accounts as [SeededAccount];
    const again = verify((await add(mine)).id, mine);
    for (let round = 0; round < raceRounds; round++) {
      expect(await race([again, again, again])).toEqual(['ok', 'ok', 'ok']);
      expect(await statuses()).toEqual(['verified']);
      await db.query(`update domains set status = 'pending', verified_at = null`);
    }
  });

  it('while another adds it as verified, 200 times: one of them has it [DOM-206, DOM-208]', async () => {
    const [mine, theirs] = accounts as [SeededAccount, SeededAccount];
    const { id } = await add(mine);
    for (let round = 0; round < raceRounds; round++) {
      const outcomes = await race([verify(id, mine), () => add(theirs, true)]);
      expect(outcomes.toSorted()).toEqual(['hostname_taken', 'ok']);
      const { rows } = await db.query<{ id: string }>(`select id from domains where status = 'verified'`);
      expect(rows.map((row) => row.id === id)).toEqual([outcomes[0] === 'ok']);
      await db.query('delete from domains where id <> $1', [id]);
      await db.query(`update domains set status = 'pending', verified_at = null`);
    }
  });
});

describe('adding against adding', () => {
  it('in one account, 200 times: the name is there once [DOM-205]', async () => {
    const [mine] = accounts as [SeededAccount];
    for (let round = 0; round < raceRounds; round++) {
      const outcomes = await race([() => add(mine), () => add(mine), () => add(mine)]);
      expect(outcomes.sort()).toEqual(['hostname_taken', 'hostname_taken', 'ok']);
      await db.query('delete from domains');
    }
  });
});

describe('verify against removal', () => {
  it('ends without the domain, 200 times', async () => {
    const [mine] = accounts as [SeededAccount];
    for (let round = 0; round < raceRounds; round++) {
      const { id } = await add(mine);
      const [verified, removed] = await race([verify(id, mine), () => removeDomain(db, mine.projectId, id)]);
      expect(removed).toBe('ok');
      expect(['ok', 'not_found']).toContain(verified);
      expect(await statuses()).toEqual([]);
    }
  });
});
