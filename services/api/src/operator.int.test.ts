import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { topics } from '@millrace/contract';
import { createTestApi, type TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

let emails = 0;
const newEmail = (): string => `operator${++emails}@example.com`;
const newAccount = async (planId = 'free') =>
  (await api.operator.createAccount({ name: 'Acme', email: newEmail(), planId })).account;
const auditOf = async (subject: string): Promise<string[]> => {
  const { rows } = await api.store.query<{ line: string }>(
    `select actor || ' ' || action as line from audit where subject = $1 order by at, id`,
    [subject],
  );
  return rows.map(({ line }) => line);
};

describe('accounts', () => {
  it('are made active, with an owner, and audited', async () => {
    const email = newEmail();
    const { account, user } = await api.operator.createAccount({ name: 'Acme', email });
    expect(account).toMatchObject({
      name: 'Acme',
      planId: 'free',
      planStatus: 'active',
      phoneVerified: false,
    });
    expect(account.id).toMatch(/^acc_[A-Za-z0-9]{22}$/);
    expect(user).toMatchObject({ role: 'owner', email });
    expect(await auditOf(account.id)).toEqual(['operator account.create']);
  });

  it('leave nothing behind when their e-mail is taken, in any case, or something is wrong', async () => {
    const email = newEmail();
    await api.operator.createAccount({ name: 'Acme', email });
    const count = async (): Promise<unknown> => (await api.store.query('select count(*) from accounts')).rows;
    const before = await count();
    for (const [input, path] of [
      [{ name: 'B', email: email.toUpperCase() }, 'email'],
      [{ name: 'B', email: 'nobody' }, 'email'],
      [{ name: ' ', email: newEmail() }, 'name'],
      [{ name: 'B', email: newEmail(), planId: 'gold' }, 'plan'],
    ] as const) {
      await expect(api.operator.createAccount(input)).rejects.toMatchObject({
        code: 'invalid_request',
        errors: [{ path }],
      });
    }
    expect(await count()).toEqual(before);
  });
});

describe('plans', () => {
  it('change at once, and the CDN hears of it through the outbox', async () => {
    const account = await newAccount();
    const changed = await api.operator.setPlan({ accountId: account.id, planId: 'pro' });
    expect(changed.planId).toBe('pro');
    const { rows } = await api.store.query<{ value: unknown; version: number }>(
      'select value, version from outbox where topic = $1 and key = $2',
      [topics.playbackState.name, account.id],
    );
    expect(rows).toHaveLength(1);
    expect(topics.playbackState.schema.parse(rows[0]?.value)).toMatchObject({
      kind: 'account',
      state: { accountId: account.id, version: rows[0]?.version, maxQuality: '2160p', whiteLabel: true },
    });
    expect(await auditOf(account.id)).toContain('operator account.plan');
  });

  it('that stop playback at the watched limit say so, others do not [MET-010]', async () => {
    const account = await newAccount();
    await api.store.query('update accounts set over_watch_limit = true where id = $1', [account.id]);
    const over = async (planId: string): Promise<unknown> => {
      await api.operator.setPlan({ accountId: account.id, planId });
      const { rows } = await api.store.query<{ over: boolean }>(
        `select (value #>> '{state,overWatchLimit}')::boolean as over from outbox where key = $1 order by id desc`,
        [account.id],
      );
      return rows[0]?.over;
    };
    expect(await over('free')).toBe(true);
    expect(await over('starter')).toBe(false);
  });
});

it('bans and lifts, and audits both with the reason', async () => {
  const account = await newAccount();
  await api.operator.banAccount({ accountId: account.id, banned: true, reason: 'fraud' });
  await api.operator.banAccount({ accountId: account.id, banned: false });
  expect(await auditOf(account.id)).toEqual([
    'operator account.create',
    'operator account.ban',
    'operator account.unban',
  ]);
});

it('adds a verified domain on its own word', async () => {
  const account = await newAccount();
  const project = await api.operator.createProject({ accountId: account.id, name: 'P' });
  const domain = await api.operator.addDomain({
    projectId: project.id,
    hostname: 'Op.Example',
    verified: true,
  });
  expect(domain).toMatchObject({ hostname: 'op.example', status: 'verified', lastCheck: null });
  expect(domain.verifiedAt).toBe(domain.createdAt);
  await expect(
    api.operator.addDomain({ projectId: project.id, hostname: 'second.example', verified: true }),
  ).rejects.toMatchObject({ code: 'plan_limit_reached' });
});

it('finds nothing for unknown ids', async () => {
  const missing = { code: 'not_found' };
  const { operator } = api;
  await expect(operator.setPlan({ accountId: 'acc_x', planId: 'pro' })).rejects.toMatchObject(missing);
  await expect(operator.banAccount({ accountId: 'acc_x', banned: true })).rejects.toMatchObject(missing);
  await expect(operator.createSession({ userId: 'usr_x' })).rejects.toMatchObject(missing);
  await expect(operator.createProject({ accountId: 'acc_x', name: 'P' })).rejects.toMatchObject(missing);
  await expect(operator.createApiKey({ projectId: 'prj_x', name: 'k', scope: 'full' })).rejects.toMatchObject(
    missing,
  );
  await expect(operator.addDomain({ projectId: 'prj_x', hostname: 'a.example' })).rejects.toMatchObject(
    missing,
  );
});

it('writes no secret into the audit log', async () => {
  const { account, user } = await api.operator.createAccount({ name: 'Acme', email: newEmail() });
  const project = await api.operator.createProject({ accountId: account.id, name: 'P' });
  const { value } = await api.operator.createApiKey({ projectId: project.id, name: 'k', scope: 'full' });
  const { cookie } = await api.operator.createSession({ userId: user.id });
  const { rows } = await api.store.query<{ row: string }>('select a::text as row from audit a');
  const text = rows.map(({ row }) => row).join('\n');
  expect(text).toContain('key.create');
  for (const secret of [value, cookie]) expect(text).not.toContain(secret.slice(-30));
});
