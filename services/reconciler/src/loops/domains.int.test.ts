import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTxtLookup } from '@millrace/platform';
import { createDatabase, type Database, isVerifiedDomain } from '@millrace/store';
import {
  captureLogger,
  createTestDatabase,
  createTestDnsServer,
  seedAccount,
  type SeededAccount,
  type TestDnsServer,
} from '@millrace/testing';
import { checkDomainsLoop } from './domains.ts';

const day = 86_400_000;
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let store: Database;
let dns: TestDnsServer;
let account: SeededAccount;
let now: Date;
let names = 0;
let hostname: string;
const log = captureLogger();

beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: log.logger });
  dns = await createTestDnsServer();
  account = await seedAccount(store);
});
afterAll(async () => {
  await store.close();
  await dns.close();
  await database.drop();
});
beforeEach(async () => {
  now = new Date('2026-05-01T00:00:00Z');
  await store.query('delete from domains');
  hostname = `d${++names}.example.com`;
  await store.query(
    `insert into domains (id, project_id, account_id, hostname, status, challenge, created_at, verified_at)
     values ($1, $2, $3, $4, 'verified', 'abc', $5, $5)`,
    [`dom_${names}`, account.projectId, account.accountId, hostname, now],
  );
});

const record = (values: string[]): void => dns.set(`_svc-verify.${hostname}`, 'TXT', values);
const run = (): Promise<number> => {
  const clock = { now: () => now, sleep: () => Promise.resolve() };
  const txt = createTxtLookup({ servers: [dns.address] });
  return checkDomainsLoop({ store, txt, clock, logger: log.logger }).run(new AbortController().signal);
};
const later = async (days: number): Promise<number> => {
  now = new Date(now.getTime() + days * day);
  return run();
};
const status = async (): Promise<string | undefined> =>
  (await store.query<{ status: string }>('select status from domains where hostname = $1', [hostname]))
    .rows[0]?.status;

describe('the daily check of domains', () => {
  it('looks each up once a day, and keeps what it found [DOM-102]', async () => {
    record(['svc-verify=abc', 'v=spf1']);
    expect([await run(), await later(1), await run(), await later(0.5), await later(0.5)]).toEqual([
      0, 1, 0, 0, 1,
    ]);
    const { rows } = await store.query('select last_check_at as at, last_check_found as found from domains');
    expect(rows).toEqual([{ at: now, found: ['svc-verify=abc', 'v=spf1'] }]);
    expect(await status()).toBe('verified');
  });

  it('lets a domain lapse whose record is gone for 7 days: no token for it then [DOM-102, DOM-103]', async () => {
    record([]);
    for (let n = 1; n <= 7; n++) {
      await later(1);
      expect([n, await status()]).toEqual([n, 'verified']);
    }
    await later(1);
    expect(await status()).toBe('lapsed');
    expect(await isVerifiedDomain(store, account.projectId, hostname)).toBe(false);
    expect(log.text()).toContain('domain lapsed');
    // It is the customer's to verify it again.
    expect(await later(1)).toBe(0);
  });

  it('counts anew when the record was there in between', async () => {
    record([]);
    for (let n = 0; n < 6; n++) await later(1);
    record(['svc-verify=abc']);
    await later(1);
    record([]);
    for (let n = 0; n < 7; n++) await later(1);
    expect(await status()).toBe('verified');
    await later(1);
    expect(await status()).toBe('lapsed');
  });

  it('proves nothing while nobody can be asked', async () => {
    dns.fault(`_svc-verify.${hostname}`, 'servfail');
    for (let n = 0; n < 9; n++) await later(1);
    expect(await status()).toBe('verified');
    dns.fault(`_svc-verify.${hostname}`, null);
  });

  it('leaves domains alone that are not verified', async () => {
    await store.query(`update domains set status = 'pending'`);
    expect(await later(3)).toBe(0);
  });
});
