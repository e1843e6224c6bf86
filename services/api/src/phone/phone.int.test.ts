import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type PhoneChallenge } from '@millrace/contract';
import { parseKeySet } from '@millrace/domain';
import { banPhone, unbanPhone } from '@millrace/store';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';
import { mobileNumber, phoneHashes } from './number.ts';

const keys = parseKeySet(`h1:${'h'.repeat(32)}`);
const minute = 60_000;

let api: TestApi;
let me: Tenant;
beforeAll(async () => {
  api = await createTestApi({ config: { SMS_PROVIDER: 'log' } });
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

let numbers = 0;
/** A Saudi mobile that no other test has. */
const freshNumber = (): string => `+9665012${String(++numbers).padStart(5, '0')}`;
const start = (body: object, tenant = me, at = api): Promise<Answer<PhoneChallenge>> =>
  at.ask<PhoneChallenge>('POST /v1/me/phone/start', { cookie: tenant.cookie, body });
const verify = (challengeId: string, code: string, tenant = me): Promise<Answer<Account>> =>
  api.ask<Account>('POST /v1/me/phone/verify', { cookie: tenant.cookie, body: { challengeId, code } });
const codeOf = ({ status, problem }: Answer): string =>
  status === 200 ? '200' : `${status} ${problem.code}`;
async function started(phone = freshNumber(), tenant = me): Promise<{ id: string; code: string }> {
  const { status, body } = await start({ phone }, tenant);
  expect(status).toBe(200);
  return { id: body.challengeId, code: body.testCode ?? '' };
}
const wrongFor = (code: string): string => (code === '000000' ? '000001' : '000000');
const challenges = async (tenant = me): Promise<number> =>
  (await api.store.query('select from phone_challenges where account_id = $1', [tenant.accountId])).rowCount;
const times = <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)));

describe('start', () => {
  it('answers the challenge, the number masked [PHN-001, PHN-002, PHN-201]', async () => {
    const { status, body } = await start({ phone: '0501234567' });
    expect([status, body]).toEqual([
      200,
      {
        challengeId: expect.stringMatching(/^phc_[A-Za-z0-9]{22}$/) as unknown,
        phone: '+966*******67',
        expiresAt: expect.any(String) as unknown,
        testCode: expect.stringMatching(/^[0-9]{6}$/) as unknown,
      },
    ]);
    const lives = Date.parse(body.expiresAt) - api.now().getTime();
    expect([lives > 9 * minute, lives <= 10 * minute]).toEqual([true, true]);
  });

  it.each<[object, string]>([
    [{ phone: '+14155552671' }, '400 invalid_phone'],
    [{ phone: 'abc' }, '400 invalid_phone'],
    [{ phone: '0112345678' }, '400 invalid_phone'],
    [{ phone: '0501234567', country: 'us' }, '400 invalid_country'],
    [{ phone: '0501234567', country: 'toString' }, '400 invalid_country'],
    [{ phone: '' }, '400 invalid_request'],
    [{ phone: 966501234567 }, '400 invalid_request'],
    [{ phone: '0501234567', country: 1 }, '400 invalid_request'],
    [{ phone: '0501234567', more: 1 }, '400 invalid_request'],
  ])('of %j is %s, and stores nothing [PHN-202, PHN-203]', async (body, code) => {
    expect(codeOf(await start(body))).toBe(code);
    expect(await challenges()).toBe(0);
  });

  it('does not look at `country` of an international number [PHN-205]', async () => {
    const phone = freshNumber();
    expect((await start({ phone, country: 'xx' })).status).toBe(200);
    expect((await start({ phone: phone.replace('+', '00'), country: 'xx' })).status).toBe(200);
  });

  it('sends 5 codes an hour to an account, however many are asked for at once [PHN-208]', async () => {
    const codes = (await times(12, () => start({ phone: freshNumber() }))).map(codeOf);
    expect(codes.filter((code) => code === '200')).toHaveLength(5);
    expect(codes.filter((code) => code === '429 phone_rate_limited')).toHaveLength(7);
    api.travel(60 * minute);
    expect((await start({ phone: freshNumber() })).status).toBe(200);
  });

  it('says when a code can be sent again [PHN-220]', async () => {
    const phone = freshNumber();
    await start({ phone });
    api.travel(20 * minute);
    await times(4, () => start({ phone }));
    const refused = await start({ phone });
    expect(codeOf(refused)).toBe('429 phone_rate_limited');
    const seconds = Number(refused.headers.get('retry-after'));
    expect([seconds > 2_340, seconds <= 2_400]).toEqual([true, true]);
    api.travel(seconds * 1_000);
    expect((await start({ phone })).status).toBe(200);
  });

  it('sends 5 codes an hour to a number, from all accounts at once [PHN-209]', async () => {
    const phone = freshNumber();
    const tenants = await times(12, () => createTenant(api));
    const codes = (await Promise.all(tenants.map((tenant) => start({ phone }, tenant)))).map(codeOf);
    expect(codes.filter((code) => code === '200')).toHaveLength(5);
    expect(codes.filter((code) => code === '429 phone_rate_limited')).toHaveLength(7);
  });

  it('voids the challenge before it, and of several at once all but one [PHN-214]', async () => {
    const first = await started();
    const second = await started();
    expect(codeOf(await verify(first.id, first.code))).toBe('404 challenge_not_found');
    const [a, b] = await times(2, () => started());
    const open = await Promise.all([a, b, second].map((each) => verify(each?.id ?? '', each?.code ?? '')));
    expect(open.map(codeOf).sort()).toEqual(['200', '404 challenge_not_found', '404 challenge_not_found']);
  });

  it('takes a session only', async () => {
    const { status } = await api.ask('POST /v1/me/phone/start', {
      bearer: me.full,
      body: { phone: '0501234567' },
    });
    expect(status).toBe(401);
  });
});

describe('verify', () => {
  it('with the right code verifies the account, once [PHN-215, ACC-004]', async () => {
    const { id, code } = await started();
    const { status, body } = await verify(id, code);
    expect([status, body.id, body.phoneVerified, body.phoneVerificationRequired]).toEqual([
      ...[200, me.accountId, true, false],
    ]);
    expect(codeOf(await verify(id, code))).toBe('404 challenge_not_found');
  });

  it('of an unknown, another account’s or a voided challenge is 404 [PHN-216]', async () => {
    const { id, code } = await started();
    const other = await createTenant(api);
    expect(codeOf(await verify(id, code, other))).toBe('404 challenge_not_found');
    expect(codeOf(await verify('phc_0000000000000000000000', code))).toBe('404 challenge_not_found');
    expect(codeOf(await verify("x' or 1=1", code))).toBe('404 challenge_not_found');
  });

  it('is 410 after 10 minutes and not before [PHN-211]', async () => {
    const [slow, late] = [await started(), await started(freshNumber(), await createTenant(api))];
    api.travel(9.9 * minute);
    expect(codeOf(await verify(slow.id, wrongFor(slow.code)))).toBe('400 invalid_code');
    api.travel(0.2 * minute);
    expect(codeOf(await verify(slow.id, slow.code))).toBe('410 code_expired');
    expect(codeOf(await verify(late.id, late.code))).toBe('404 challenge_not_found');
  });

  it('takes 5 wrong codes; then the right one is 429 too [PHN-217, PHN-218]', async () => {
    const { id, code } = await started();
    const codes: string[] = [];
    for (let i = 0; i < 7; i++) codes.push(codeOf(await verify(id, wrongFor(code))));
    expect(codes).toEqual([
      ...Array.from({ length: 5 }, () => '400 invalid_code'),
      ...['429 too_many_attempts', '429 too_many_attempts'],
    ]);
    expect(codeOf(await verify(id, code))).toBe('429 too_many_attempts');
  });

  it('says 404 before 410, and 410 before 429 [PHN-219]', async () => {
    const { id, code } = await started();
    for (let i = 0; i < 5; i++) await verify(id, wrongFor(code));
    api.travel(11 * minute);
    expect(codeOf(await verify(id, code))).toBe('410 code_expired');
    await started();
    expect(codeOf(await verify(id, code))).toBe('404 challenge_not_found');
  });

  it.each([25, 25])('counts wrong codes that come at once, %i [PHN-218]', async (count) => {
    const { id, code } = await started();
    const codes = (await times(count, () => verify(id, wrongFor(code)))).map(codeOf);
    expect(codes.filter((each) => each === '400 invalid_code')).toHaveLength(5);
    expect(codes.filter((each) => each === '429 too_many_attempts')).toHaveLength(count - 5);
  });

  it('lets one of many right codes at once win, 200 times over', async () => {
    const { id, code } = await started();
    for (let round = 0; round < 200; round++) {
      await api.store.query('update phone_challenges set closed_at = null where id = $1', [id]);
      const codes = (await times(3, () => verify(id, code))).map(codeOf).sort();
      expect(codes).toEqual(['200', '404 challenge_not_found', '404 challenge_not_found']);
    }
  }, 60_000);
});

describe('bans', () => {
  const ban = (phone: string): Promise<void> =>
    api.store.transaction((tx) => banPhone(tx, { phoneHashes: phoneHashes(phone, keys), actor: 'admin' }));

  it('a banned number is refused, until the ban is lifted [PHN-210]', async () => {
    const phone = freshNumber();
    const open = await started(phone);
    await ban(phone);
    expect(codeOf(await start({ phone }))).toBe('403 banned');
    expect(codeOf(await verify(open.id, open.code))).toBe('403 banned');
    await api.store.transaction((tx) =>
      unbanPhone(tx, { phoneHashes: phoneHashes(phone, keys), actor: 'admin' }),
    );
    expect(codeOf(await start({ phone }))).toBe('200');
  });

  it('an account whose verified number is banned is refused with every credential [BAN-002, AUT-011]', async () => {
    const phone = freshNumber();
    const { id, code } = await started(phone);
    await verify(id, code);
    expect((await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full })).status).toBe(200);
    await ban(phone);
    expect(codeOf(await api.ask('GET /v1/me', { cookie: me.cookie }))).toBe('403 banned');
    expect(codeOf(await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full }))).toBe('403 banned');
  });

  it('a banned account is refused [PHN-210]', async () => {
    await api.operator.banAccount({ accountId: me.accountId, banned: true });
    expect(codeOf(await start({ phone: freshNumber() }))).toBe('403 account_banned');
  });

  it('are audited without the number', async () => {
    const phone = freshNumber();
    await ban(phone);
    const { rows } = await api.store.query<{ row: string }>(
      `select audit::text as row from audit where action = 'phone.ban'`,
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.map(({ row }) => row).join()).not.toContain(phone.slice(1));
  });
});

describe('number and code', () => {
  it('are in no table and no line of the log; the number’s HMAC is [PHN-206, PHN-207]', async () => {
    const phone = '+966559871234';
    const { id, code } = await started(phone);
    await verify(id, wrongFor(code));
    await verify(id, code);
    await start({ phone: '+14155559871' });
    const { rows: tables } = await api.store.query<{ name: string }>(
      `select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`,
    );
    expect(tables.map(({ name }) => name)).toContain('phone_challenges');
    const texts = [api.log.text()];
    for (const { name } of tables) {
      const { rows } = await api.store.query<{ text: string }>(
        `select coalesce(string_agg(t::text, E'\\n'), '') as text from ${name} t`,
      );
      texts.push(rows[0]?.text ?? '');
    }
    const all = texts.join('\n');
    expect(all).not.toMatch(/559871234|155559871/);
    expect(all).not.toMatch(new RegExp(`\\b${code}\\b`));
    const stored = phoneHashes(mobileNumber(phone), keys)[0]?.toString('hex') ?? '-';
    expect(all).toContain(stored);
  });
});

describe('settings', () => {
  it('without a provider start is 503 [PHN-212]', async () => {
    const bare = await createTestApi();
    const tenant = await createTenant(bare);
    expect(codeOf(await start({ phone: freshNumber() }, tenant, bare))).toBe('503 sms_not_configured');
    await bare.close();
  });

  it('of production tell no code, whatever the provider [PHN-003]', async () => {
    const production = await createTestApi({ config: { SMS_PROVIDER: 'log', NODE_ENV: 'production' } });
    const tenant = await createTenant(production);
    const answer = await start({ phone: freshNumber() }, tenant, production);
    expect(codeOf(answer)).toBe('503 sms_not_configured');
    expect(JSON.stringify(answer.body)).not.toContain('testCode');
    await production.close();
  });
});
