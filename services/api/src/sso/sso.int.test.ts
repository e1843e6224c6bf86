import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type User } from '@millrace/contract';
import { banDevice, unbanDevice } from '@millrace/store';
import { type Browser, createBrowser, type Page } from '../testing/browser.ts';
import {
  clientId,
  clientSecret,
  createIdentityProvider,
  type IdentityProvider,
  type Person,
} from '../testing/identity-provider.ts';
import { createTestApi, type TestApi } from '../testing/test-api.ts';

const origin = 'https://api.example.com';
const dashboard = 'https://app.example.com';
const callback = /^https:\/\/api\.example\.com\/auth\/\w+\/callback\?/;
const minute = 60_000;

let api: TestApi;
let idp: IdentityProvider;
let browser: Browser;
beforeAll(async () => {
  idp = await createIdentityProvider(
    ['google', 'microsoft'].map((name) => `${origin}/auth/${name}/callback`),
  );
  api = await createTestApi({ config: configOf(idp.issuer) });
});
afterAll(async () => {
  await api.close();
  await idp.close();
});
beforeEach(() => {
  browser = createBrowser({ [origin]: api.url });
  idp.person = newPerson();
});

const configOf = (issuer: string) => ({
  SSO_GOOGLE_ISSUER: issuer,
  SSO_GOOGLE_CLIENT_ID: clientId,
  SSO_GOOGLE_CLIENT_SECRET: clientSecret,
  SSO_MICROSOFT_ISSUER: issuer,
  SSO_MICROSOFT_CLIENT_ID: clientId,
  SSO_MICROSOFT_CLIENT_SECRET: clientSecret,
});

let people = 0;
function newPerson(more: Partial<Person> = {}): Person {
  const sub = `person-${++people}`;
  return { sub, email: `${sub}@example.com`, email_verified: true, name: `Person ${people}`, ...more };
}

const startUrl = (provider = 'google', returnTo?: string): string =>
  `${origin}/auth/${provider}/start${returnTo === undefined ? '' : `?returnTo=${encodeURIComponent(returnTo)}`}`;
/** Up to the address that the provider sends the browser back to. */
const untilCallback = (url = startUrl(), by = browser): Promise<string> => by.follow(url, callback);
const signIn = async (provider = 'google', returnTo?: string, by = browser): Promise<Page> =>
  by.open(await untilCallback(startUrl(provider, returnTo), by));
const codeOf = ({ status, text }: Page): string => `${status} ${(JSON.parse(text) as { code: string }).code}`;
const sessionOf = (by = browser): string => by.cookies(origin).get('svc_session') ?? '';
async function me(by = browser): Promise<{ user: User; account: Account }> {
  const { status, body } = await api.ask<{ user: User; account: Account }>('GET /v1/me', {
    cookie: sessionOf(by),
  });
  expect(status).toBe(200);
  return body;
}
const usersCalled = async (email: string): Promise<number> =>
  (await api.store.query('select from users where lower(email) = lower($1)', [email])).rowCount;
const changed = (url: string, name: string, value: string): string => {
  const copy = new URL(url);
  copy.searchParams.set(name, value);
  return copy.href;
};

describe('start', () => {
  it('leads to the provider with PKCE, state and nonce [SSO-201]', async () => {
    const { status, location } = await browser.open(startUrl());
    expect(status).toBe(303);
    const to = new URL(location ?? '');
    expect(to.href.startsWith(`${idp.issuer}/auth?`)).toBe(true);
    expect(Object.fromEntries(to.searchParams)).toMatchObject({
      ...{ client_id: clientId, response_type: 'code', scope: 'openid email profile' },
      ...{ redirect_uri: `${origin}/auth/google/callback`, code_challenge_method: 'S256' },
      code_challenge: expect.stringMatching(/^[\w-]{43}$/) as unknown,
      state: expect.stringMatching(/^[\w-]{43}$/) as unknown,
      nonce: expect.stringMatching(/^[\w-]{43}$/) as unknown,
    });
  });

  it('keeps them in a signed, HttpOnly cookie of this host for ten minutes [SSO-202, SSO-218]', async () => {
    const { headers } = await browser.open(startUrl());
    const cookies = headers.getSetCookie();
    expect(cookies).toHaveLength(1);
    expect(cookies[0]).toMatch(
      /^__Host-svc_signin_[\w-]{16}=[\w-]+\.[\w-]+; Path=\/; Max-Age=600; HttpOnly; Secure; SameSite=Lax$/,
    );
  });

  it('of another provider is 404 [SSO-206]', async () => {
    for (const name of ['apple', 'constructor', 'google2']) {
      expect(codeOf(await browser.open(startUrl(name)))).toBe('404 not_found');
      expect(codeOf(await browser.open(`${origin}/auth/${name}/callback`))).toBe('404 not_found');
    }
  });

  it('of a provider, or without a dashboard or keys, that is not configured is 503 [SSO-207]', async () => {
    const whole = configOf(idp.issuer);
    const half = { SSO_GOOGLE_CLIENT_ID: clientId };
    for (const config of [
      {},
      half,
      { ...whole, SIGN_IN_KEYS: undefined },
      { ...whole, DASHBOARD_HOSTS: [] },
    ]) {
      const bare = await createTestApi({ config });
      const answer = await createBrowser({ [origin]: bare.url }).open(startUrl());
      await bare.close();
      expect(codeOf(answer)).toBe('503 not_configured');
    }
  });
});

describe('the first sign-in', () => {
  it('makes the owner and a free, active account, and leads to the dashboard [SSO-208, SSO-213]', async () => {
    const { status, location } = await signIn('google', '/videos?tab=2#top');
    expect([status, location]).toEqual([303, `${dashboard}/videos?tab=2#top`]);
    const { user, account } = await me();
    expect(user).toMatchObject({ role: 'owner', email: idp.person?.email, displayName: idp.person?.name });
    expect(account).toMatchObject({ planId: 'free', planStatus: 'active', phoneVerified: false });
  });

  it('sets the session and device cookies, and takes the flow’s back [SES-001, SSO-208, SSO-217]', async () => {
    const { headers } = await signIn();
    const lines = headers.getSetCookie();
    const like = (name: string): string[] => lines.filter((line) => line.startsWith(name));
    expect(like('svc_session=')).toEqual([
      expect.stringMatching(
        /^svc_session=ses_\w{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax$/,
      ),
    ]);
    expect(like('svc_device=')).toEqual([
      expect.stringMatching(
        /^svc_device=[\w-]+\.[\w-]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Lax$/,
      ),
    ]);
    expect(like('__Host-svc_signin_')).toEqual([expect.stringMatching(/=; Path=\/; Max-Age=0;/)]);
  });

  it('stores no password, code or token [SSO-214]', async () => {
    const back = await untilCallback();
    await browser.open(back);
    const { rows } = await api.store.query<{ text: string }>('select users::text as text from users');
    const { rows: columns } = await api.store.query<{ name: string }>(
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and column_name ~ 'passw|refresh|access_token'`,
    );
    expect(columns).toEqual([]);
    const everything = rows.map(({ text }) => text).join() + api.log.text();
    for (const secret of [new URL(back).searchParams.get('code') ?? '-', sessionOf(), clientSecret])
      expect(everything).not.toContain(secret);
  });

  it.each<[string, Partial<Person>]>([
    ['google', { email_verified: false }],
    ['google', { email_verified: false, xms_edov: true }],
    ['microsoft', {}],
    ['microsoft', { xms_edov: false }],
    ['microsoft', { xms_edov: '0' }],
  ])('by %s of %j is refused: the e-mail is not verified [SSO-212, SSO-216]', async (provider, more) => {
    idp.person = newPerson(more);
    const page = await signIn(provider);
    expect([page.status, page.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
    expect(page.text).toContain('auth_denied');
    expect(sessionOf()).toBe('');
    expect(await usersCalled(idp.person.email ?? '')).toBe(0);
  });

  it.each([true, 1, '1', 'true'])('by microsoft with xms_edov %j is taken [SSO-212]', async (xms_edov) => {
    idp.person = newPerson({ xms_edov, email_verified: false });
    expect((await signIn('microsoft')).status).toBe(303);
    expect((await me()).user.email).toBe(idp.person.email);
  });

  it('without an e-mail is refused, and a strange name becomes a plain one [SSO-216]', async () => {
    idp.person = { sub: `person-${++people}`, name: 'Nobody' };
    expect((await signIn()).status).toBe(400);
    browser = createBrowser({ [origin]: api.url });
    idp.person = newPerson({ name: `  a\u0000b\n${'😀'.repeat(200)}` });
    expect((await signIn()).status).toBe(303);
    expect((await me()).user.displayName).toBe(`a b ${'😀'.repeat(96)}`);
  });

  it('in many browsers at once makes one user [SSO-210]', async () => {
    const browsers = Array.from({ length: 8 }, () => createBrowser({ [origin]: api.url }));
    const backs = await Promise.all(browsers.map((each) => untilCallback(startUrl(), each)));
    const pages = await Promise.all(browsers.map((each, index) => each.open(backs[index] ?? '')));
    expect(pages.map(({ status }) => status)).toEqual(browsers.map(() => 303));
    const ids = await Promise.all(browsers.map(async (each) => (await me(each)).user.id));
    expect(new Set(ids).size).toBe(1);
  });
});

describe('a later sign-in', () => {
  it('finds the user by issuer and subject, whatever the e-mail is now [SSO-210]', async () => {
    await signIn();
    const { user } = await me();
    const sub = idp.person?.sub ?? '';
    for (const email of ['new@example.com', undefined]) {
      idp.person = { sub, ...(email === undefined ? {} : { email, email_verified: false }) };
      browser = createBrowser({ [origin]: api.url });
      expect((await signIn()).status).toBe(303);
      expect((await me()).user).toEqual(user);
    }
  });

  it('makes a new session, whatever the browser came with [SES-002]', async () => {
    await signIn();
    const earlier = sessionOf();
    await signIn();
    expect(sessionOf()).not.toBe(earlier);
    const planted = `ses_${'a'.repeat(43)}`;
    browser.cookies(origin).set('svc_session', planted);
    await signIn();
    expect(sessionOf()).not.toBe(planted);
    await me();
    expect((await api.ask('GET /v1/me', { cookie: planted })).status).toBe(401);
  });

  it('of another identity with a known e-mail is refused, on a page [SSO-210, SSO-211]', async () => {
    await signIn();
    const email = idp.person?.email ?? '';
    const stranger = createBrowser({ [origin]: api.url });
    idp.person = newPerson({ email: email.toUpperCase(), name: '<script>' });
    const { status, headers, text } = await signIn('google', undefined, stranger);
    expect([status, headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8']);
    expect(text).toMatch(/auth_denied[^]*/);
    expect(text).toContain('signs in another way');
    expect(text).not.toContain('<script>');
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    expect([sessionOf(stranger), await usersCalled(email)]).toEqual(['', 1]);
  });

  it('of a user that the operator made is no way in either [SSO-210]', async () => {
    const email = `made${++people}@example.com`;
    await api.operator.createAccount({ name: 'Made', email });
    idp.person = newPerson({ email });
    expect((await signIn()).status).toBe(400);
    expect(sessionOf()).toBe('');
  });

  it('of a banned account is 403 [BAN-001]', async () => {
    await signIn();
    const { account } = await me();
    await api.operator.banAccount({ accountId: account.id, banned: true });
    expect(codeOf(await signIn())).toBe('403 account_banned');
  });

  it('in two tabs of a browser works in both', async () => {
    const [first, second] = [
      await untilCallback(startUrl('google', '/a')),
      await untilCallback(startUrl('google', '/b')),
    ];
    const pages = [await browser.open(first), await browser.open(second)];
    expect(pages.map(({ location }) => location)).toEqual([`${dashboard}/a`, `${dashboard}/b`]);
  });

  it('in many tabs keeps the newest flows only, so that cookies do not pile up', async () => {
    for (let tab = 0; tab < 10; tab++) {
      await browser.open(startUrl());
      api.travel(1);
    }
    const flows = [...browser.cookies(origin).keys()].filter((name) => name.startsWith('__Host-svc_signin_'));
    expect(flows).toHaveLength(4);
    expect((await browser.open(await untilCallback())).status).toBe(303);
  });
});

describe('a callback', () => {
  it.each<[string, (back: string) => string]>([
    ['another state', (back) => changed(back, 'state', 'x'.repeat(43))],
    ['a state with the same beginning', (back) => back.replace(/(state=[\w-]{42})./, '$1_')],
    ['no state', (back) => back.replace('state=', 'other=')],
    ['the state twice', (back) => `${back}&state=x`],
    ['another provider', (back) => back.replace('/google/', '/microsoft/')],
  ])('with %s is 400 [SSO-203]', async (_what, change) => {
    const back = await untilCallback();
    expect(codeOf(await browser.open(change(back)))).toBe('400 invalid_state');
    expect(sessionOf()).toBe('');
  });

  it('in another browser, or with a changed cookie, is 400 [SSO-203]', async () => {
    const back = await untilCallback();
    expect(codeOf(await createBrowser({ [origin]: api.url }).open(back))).toBe('400 invalid_state');
    const jar = browser.cookies(origin);
    for (const [name, value] of jar) {
      const [body = '', signature = ''] = value.split('.');
      const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
      const forged = Buffer.from(JSON.stringify({ ...claims, r: '//evil.example' })).toString('base64url');
      jar.set(name, `${forged}.${signature}`);
    }
    expect(codeOf(await browser.open(back))).toBe('400 invalid_state');
  });

  it('after ten minutes is 400, and before it is not [SSO-202, SSO-203]', async () => {
    const [early, late] = [await untilCallback(), await untilCallback()];
    api.travel(9.9 * minute);
    expect((await browser.open(early)).status).toBe(303);
    api.travel(0.2 * minute);
    expect(codeOf(await browser.open(late))).toBe('400 invalid_state');
  });

  it('counts once: again it is 400, and with the cookie kept the provider refuses [SSO-203, SSO-205]', async () => {
    const back = await untilCallback();
    const kept = new Map(browser.cookies(origin));
    expect((await browser.open(back)).status).toBe(303);
    expect(codeOf(await browser.open(back))).toBe('400 invalid_state');
    for (const [name, value] of kept) browser.cookies(origin).set(name, value);
    expect(codeOf(await browser.open(back))).toBe('502 provider_error');
  });

  it('with an ID token of another flow is 400 [SSO-203]', async () => {
    const { location } = await browser.open(startUrl());
    const back = await untilCallback(changed(location ?? '', 'nonce', 'another'));
    expect(codeOf(await browser.open(back))).toBe('400 invalid_state');
  });

  it('whose code was made for another verifier, or is made up, is 502 [SSO-205]', async () => {
    const { location } = await browser.open(startUrl());
    const back = await untilCallback(changed(location ?? '', 'code_challenge', 'A'.repeat(43)));
    expect(codeOf(await browser.open(back))).toBe('502 provider_error');
    expect(codeOf(await browser.open(changed(await untilCallback(), 'code', 'made-up')))).toBe(
      '502 provider_error',
    );
    expect(codeOf(await browser.open(changed(await untilCallback(), 'iss', 'https://evil.example')))).toBe(
      '502 provider_error',
    );
    expect(sessionOf()).toBe('');
  });

  it('after the person cancelled is 400 auth_denied; other errors are 502 [SSO-204, SSO-205]', async () => {
    idp.person = null;
    expect(codeOf(await signIn())).toBe('400 auth_denied');
    const back = new URL(await untilCallback());
    back.searchParams.set('error', 'server_error');
    expect(codeOf(await browser.open(back.href))).toBe('502 provider_error');
  });

  it('shows people a page, and scripts the problem', async () => {
    const url = `${origin}/auth/google/callback?state=x`;
    // `fetch` says that it is a script, and cannot be told to say otherwise.
    const request = get(url.replace(origin, api.url), { headers: { 'sec-fetch-mode': 'navigate' } });
    const [page] = (await once(request, 'response')) as [IncomingMessage];
    expect([page.statusCode, page.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8']);
    expect(await text(page)).toContain('invalid_state');
    expect((await browser.open(url)).headers.get('content-type')).toBe('application/problem+json');
  });

  it('while the provider is away is 502, as is start; when it is back, start works [SSO-205]', async () => {
    const own = await createIdentityProvider([`${origin}/auth/google/callback`]);
    own.person = newPerson();
    let away = true;
    const other = await createTestApi({
      config: configOf(own.issuer),
      fetch: (...request) => (away ? Promise.reject(new TypeError('fetch failed')) : fetch(...request)),
    });
    try {
      const by = createBrowser({ [origin]: other.url });
      expect(codeOf(await by.open(startUrl()))).toBe('502 provider_error');
      away = false;
      const back = await untilCallback(startUrl(), by);
      away = true;
      expect(codeOf(await by.open(back))).toBe('502 provider_error');
      expect(other.log.text()).not.toContain(new URL(back).searchParams.get('code') ?? '-');
    } finally {
      await other.close();
      await own.close();
    }
  });
});

describe('returnTo', () => {
  it.each([
    ...['//evil.example', '/\\evil.example', '\\\\evil.example', 'https://evil.example', 'evil.example'],
    ...[
      '/\t/evil.example',
      '/\n/evil.example',
      '\t//evil.example',
      '/a\\b',
      '/\u007f',
      '',
      'javascript:alert(1)',
    ],
    ...['/.//evil.example', '/x/..//evil.example', '/%00/../\u0085', `/${'x'.repeat(2_000)}`],
  ])('%j leads to / [SSO-209]', async (returnTo) => {
    expect((await signIn('google', returnTo)).location).toBe(`${dashboard}/`);
  });

  it.each(['/a', '/a/b?c=d&e=//f#g', '/%2F/evil', '/a@evil.example', '/é', `/${'x'.repeat(800)}`])(
    '%j is kept [SSO-209]',
    async (returnTo) => {
      expect((await signIn('google', returnTo)).location).toBe(new URL(returnTo, dashboard).href);
    },
  );

  it('given twice leads to /', async () => {
    const back = await untilCallback(`${origin}/auth/google/start?returnTo=/a&returnTo=/b`);
    expect((await browser.open(back)).location).toBe(`${dashboard}/`);
  });
});

describe('sign-out', () => {
  it('ends the session at once and takes its cookie back [SSO-215]', async () => {
    await signIn();
    const cookie = sessionOf();
    const other = createBrowser({ [origin]: api.url });
    await signIn('google', undefined, other);
    const answer = await api.ask('POST /auth/logout', { cookie });
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([
      204,
      ['svc_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax'],
    ]);
    expect((await api.ask('GET /v1/me', { cookie })).status).toBe(401);
    expect((await api.ask('POST /auth/logout', { cookie })).status).toBe(401);
    await me(other);
  });

  it('is not for other sites to cause [SES-005]', async () => {
    await signIn();
    const cookie = sessionOf();
    const headers = { origin: 'https://evil.example' };
    expect((await api.ask('POST /auth/logout', { cookie, headers })).status).toBe(401);
    await me();
  });
});

describe('a banned device', () => {
  it('is refused at sign-in and on every call of its session, until the ban is lifted [BAN-003]', async () => {
    await signIn();
    const cookies = `svc_session=${sessionOf()}; svc_device=${browser.cookies(origin).get('svc_device') ?? ''}`;
    const line = [...api.log.lines].reverse().find(({ message }) => message === 'signed in');
    const deviceId = line?.fields['deviceId'] as string;
    const call = async (): Promise<number> =>
      (await api.ask('GET /v1/me', { headers: { cookie: cookies } })).status;
    expect(await call()).toBe(200);
    await api.store.transaction((tx) => banDevice(tx, { deviceId, actor: 'admin' }));
    expect(await call()).toBe(403);
    expect(codeOf(await browser.open(startUrl()))).toBe('403 banned');
    await me();
    await api.store.transaction((tx) => unbanDevice(tx, { deviceId, actor: 'admin' }));
    expect(await call()).toBe(200);
  });

  it('stays the same device over sign-ins; a forged cookie is none [SSO-217]', async () => {
    await signIn();
    await signIn();
    const ids = api.log.lines.filter(({ message }) => message === 'signed in').slice(-2);
    expect(ids[0]?.fields['deviceId']).toBe(ids[1]?.fields['deviceId']);
    browser.cookies(origin).set('svc_device', 'made.up');
    await signIn();
    const last = api.log.lines.filter(({ message }) => message === 'signed in').at(-1);
    expect(last?.fields['deviceId']).not.toBe(ids[0]?.fields['deviceId']);
  });
});
