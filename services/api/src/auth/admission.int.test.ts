import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type RouteDefinition } from '@millrace/contract';
import { newId, parseKeySet, signText, signUploadToken } from '@millrace/domain';
import { type Guard } from '@millrace/platform';
import { banDevice, createDatabase, type Database, insertUpload } from '@millrace/store';
import {
  captureLogger,
  createManualClock,
  createTestDatabase,
  type ManualClock,
  type TestDatabase,
  waitFor,
} from '@millrace/testing';
import { type IncomingHttpHeaders } from 'node:http';
import { type ApiConfig } from '../config.ts';
import { createOperator, type Operator } from '../operator.ts';
import { seedVideo } from '../testing/seed-video.ts';
import { createCustomerGuard } from './guard.ts';

/** What the guard says of each caller, asked without a server around it. */

const day = 86_400_000;
const keys = parseKeySet(`k1:${'k'.repeat(32)}`);
const config = {
  API_URL: 'https://api.example.com',
  DASHBOARD_HOSTS: ['app.example.com', 'admin.example.com'],
  UPLOAD_TOKEN_KEYS: keys,
  SIGN_IN_KEYS: keys,
} as ApiConfig;
const log = captureLogger();

let database: TestDatabase;
let store: Database;
let clock: ManualClock;
let operator: Operator;
let guard: Guard;
let me: Awaited<ReturnType<typeof tenant>>;

beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: log.logger });
  clock = createManualClock(new Date());
  operator = createOperator({ store, clock });
  guard = createCustomerGuard({ config, store, clock });
  me = await tenant();
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

let tenants = 0;
async function tenant() {
  tenants++;
  const { account, user } = await operator.createAccount({
    ...{ name: 'A', email: `t${tenants}@example.com`, planId: 'agency' },
  });
  const project = await operator.createProject({ accountId: account.id, name: 'P' });
  const keyOf = (scope: 'full' | 'playback') =>
    operator.createApiKey({ projectId: project.id, name: scope, scope });
  const { cookie } = await operator.createSession({ userId: user.id });
  return {
    ...{ accountId: account.id, userId: user.id, projectId: project.id },
    ...{ full: await keyOf('full'), playback: await keyOf('playback'), cookie },
  };
}

interface Asked {
  auth?: RouteDefinition['auth'];
  keyScope?: 'playback';
  finds?: 'video';
  method?: string;
  params?: Record<string, string>;
  headers?: IncomingHttpHeaders;
  by?: Guard;
}
const admission = ({
  auth = ['key', 'session'],
  keyScope,
  finds,
  method = 'POST',
  params = { projectId: me.projectId },
  headers = {},
  by = guard,
}: Asked) =>
  by({ auth, ...(keyScope && { keyScope }), ...(finds && { finds }) } as unknown as RouteDefinition, {
    ...{ method, params, headers, log: log.logger },
  });
const refusal = (asked: Asked): Promise<string> =>
  admission(asked).then(
    () => 'admitted',
    (error: unknown) => (error as { code: string }).code,
  );
const bearer = (token: string): IncomingHttpHeaders => ({ authorization: `Bearer ${token}` });
const signedIn = (more: IncomingHttpHeaders = {}): IncomingHttpHeaders => ({
  cookie: `svc_session=${me.cookie}`,
  ...more,
});

describe('the customers’ guard', () => {
  it('asks nobody who calls a route for everybody', async () => {
    expect(await admission({ auth: [], params: {} })).toEqual({ context: {}, jsonOnly: false });
  });

  it('says which key calls, for which project and with which plan', async () => {
    expect(await admission({ headers: bearer(me.full.value) })).toEqual({
      context: {
        caller: { kind: 'key', keyId: me.full.id, scope: 'full', accountId: me.accountId },
        project: expect.objectContaining({ id: me.projectId, accountId: me.accountId }) as unknown,
        plan: expect.objectContaining({ id: 'agency' }) as unknown,
      },
      jsonOnly: false,
    });
    const { context } = await admission({ keyScope: 'playback', headers: bearer(me.playback.value) });
    expect(context).toMatchObject({ caller: { keyId: me.playback.id, scope: 'playback' } });
  });

  it('says who is signed in, on a route of a project and on one of the account', async () => {
    const caller = { kind: 'session', userId: me.userId, accountId: me.accountId };
    const plan = expect.objectContaining({ id: 'agency' }) as unknown;
    expect(await admission({ headers: signedIn() })).toEqual({
      context: { caller, plan, project: expect.objectContaining({ id: me.projectId }) as unknown },
      jsonOnly: true,
    });
    expect(await admission({ auth: ['session'], params: {}, headers: signedIn() })).toEqual({
      context: { caller, plan },
      jsonOnly: true,
    });
  });

  it('finds the video of a route that wants it, of the caller’s project alone', async () => {
    const other = await tenant();
    const seed = (of: { projectId: string; accountId: string }): Promise<string> =>
      seedVideo(store, of, { status: 'uploading' });
    const [mine, foreign] = [await seed(me), await seed(other)];
    for (const headers of [bearer(me.full.value), signedIn()]) {
      const found = async (videoId: string): Promise<unknown> => {
        const params = { projectId: me.projectId, videoId };
        return (await admission({ finds: 'video', params, headers })).context;
      };
      expect(await found(mine)).toMatchObject({
        caller: { accountId: me.accountId },
        video: { id: mine, projectId: me.projectId },
      });
      expect(await found(foreign)).toMatchObject({ video: null });
    }
  });

  it.each<[string, () => Asked, string]>([
    ['nobody', () => ({}), 'unauthorized'],
    ['a session on a key’s route', () => ({ auth: ['key'], headers: signedIn() }), 'unauthorized'],
    [
      'a full key on a session’s route',
      () => ({ auth: ['session'], headers: bearer(me.full.value) }),
      'unauthorized',
    ],
    [
      'a playback key there',
      () => ({ auth: ['session'], headers: bearer(me.playback.value) }),
      'insufficient_scope',
    ],
    ['a playback key that wants more', () => ({ headers: bearer(me.playback.value) }), 'insufficient_scope'],
    [
      'a full key for a playback key’s route',
      () => ({ keyScope: 'playback', headers: bearer(me.full.value) }),
      'admitted',
    ],
    ['a full key without a project', () => ({ params: {}, headers: bearer(me.full.value) }), 'admitted'],
    [
      'a key elsewhere',
      () => ({ params: { projectId: 'prj_x' }, headers: bearer(me.full.value) }),
      'not_found',
    ],
    ['a session elsewhere', () => ({ params: { projectId: 'prj_x' }, headers: signedIn() }), 'not_found'],
    ['a wrong secret', () => ({ headers: bearer(`${me.full.value.slice(0, -8)}AAAAAAAA`) }), 'unauthorized'],
    [
      'a key of nobody',
      () => ({ headers: bearer(me.full.value.replace(/_\w{22}_/, `_${'A'.repeat(22)}_`)) }),
      'unauthorized',
    ],
    ['a session of nobody', () => ({ headers: { cookie: 'svc_session=x' } }), 'unauthorized'],
  ])('hears %s: %s', async (_who, asked, expected) => {
    expect(await refusal(asked())).toBe(expected);
  });

  it('takes a key until the instant of its expiry, and not when it is revoked', async () => {
    const expiresAt = new Date(clock.now().getTime() + day);
    const brief = await operator.createApiKey({
      projectId: me.projectId,
      name: 'b',
      scope: 'full',
      expiresAt,
    });
    const at = (now: Date) =>
      refusal({
        headers: bearer(brief.value),
        by: createCustomerGuard({ config, store, clock: { ...clock, now: () => now } }),
      });
    expect(await at(new Date(expiresAt.getTime() - 1))).toBe('admitted');
    expect(await at(expiresAt)).toBe('unauthorized');
    await store.query('update api_keys set revoked_at = now() where id = $1', [brief.id]);
    expect(await at(new Date(expiresAt.getTime() - 1))).toBe('unauthorized');
  });

  it('writes down the use of key and session, once a minute', async () => {
    const fresh = await tenant();
    const headers = { cookie: `svc_session=${fresh.cookie}` };
    const begin = clock.now().getTime();
    const at = (ms: number, credential: IncomingHttpHeaders): Promise<unknown> =>
      admission({
        ...{ params: { projectId: fresh.projectId }, headers: credential },
        by: createCustomerGuard({ config, store, clock: { ...clock, now: () => new Date(begin + ms) } }),
      });
    const used = async (): Promise<(number | undefined)[]> => {
      const key = await store.query<{ at: Date | null }>(
        'select last_used_at as at from api_keys where id = $1',
        [fresh.full.id],
      );
      const session = await store.query<{ at: Date }>(
        'select last_seen_at as at from sessions where user_id = $1',
        [fresh.userId],
      );
      return [key.rows[0]?.at?.getTime(), session.rows[0]?.at.getTime()];
    };
    expect(await used()).toEqual([undefined, begin]);
    const credentials = [bearer(fresh.full.value), headers];
    for (const credential of credentials) await at(1_000, credential);
    await waitFor(async () => (await used())[0] === begin + 1_000);
    for (const credential of credentials) await at(59_999, credential);
    expect(await used()).toEqual([begin + 1_000, begin]);
    await at(60_000, headers);
    await waitFor(async () => (await used())[1] === begin + 60_000);
    await at(61_000, bearer(fresh.full.value));
    await waitFor(async () => (await used())[0] === begin + 61_000);
  });

  it('admits though it cannot write that down, and says so in the log', async () => {
    const fresh = await tenant();
    const query = (text: string, values?: unknown[], name?: string): Promise<unknown> =>
      /^\s*update/i.test(text) ? Promise.reject(new Error('read only')) : store.query(text, values, name);
    const failing: Database = { ...store, query: query as Database['query'] };
    const by = createCustomerGuard({ config, store: failing, clock });
    const params = { projectId: fresh.projectId };
    await admission({ by, params, headers: bearer(fresh.full.value) });
    await store.query(
      `update sessions set last_seen_at = last_seen_at - interval '2 minutes' where user_id = $1`,
      [fresh.userId],
    );
    await admission({ by, params, headers: { cookie: `svc_session=${fresh.cookie}` } });
    const warnings = (): unknown[] =>
      log.lines
        .filter(({ level }) => level === 'warn')
        .map(({ message, fields }) => [message, (fields['err'] as Error).message]);
    await waitFor(() => warnings().length >= 2);
    expect(warnings()).toEqual([
      ['key use not noted', 'read only'],
      ['session use not noted', 'read only'],
    ]);
  });
});

describe('a session that another site may have sent', () => {
  it.each<[string, string, IncomingHttpHeaders, string]>([
    ['without an Origin', 'POST', {}, 'admitted'],
    ['from a dashboard', 'POST', { origin: 'https://app.example.com' }, 'admitted'],
    ['from the other dashboard', 'DELETE', { origin: 'https://ADMIN.example.com' }, 'admitted'],
    ['from the API itself', 'PATCH', { origin: 'https://api.example.com' }, 'admitted'],
    ['from elsewhere', 'POST', { origin: 'https://evil.example' }, 'unauthorized'],
    ['cross-site without an Origin', 'POST', { 'sec-fetch-site': 'cross-site' }, 'unauthorized'],
    ['same-site', 'POST', { 'sec-fetch-site': 'same-site' }, 'admitted'],
    ['reading, from elsewhere', 'GET', { origin: 'https://evil.example' }, 'admitted'],
    ['reading, cross-site', 'GET', { 'sec-fetch-site': 'cross-site' }, 'admitted'],
    ['looking, cross-site', 'HEAD', { 'sec-fetch-site': 'cross-site' }, 'admitted'],
  ])('%s (%s): %s', async (_what, method, headers, expected) => {
    expect(await refusal({ method, headers: signedIn(headers) })).toBe(expected);
  });
});

describe('a banned device', () => {
  it('is refused with its session, and nobody else', async () => {
    const device = (dev: string): IncomingHttpHeaders => ({
      cookie: `svc_session=${me.cookie}; svc_device=${signText('millrace.device.v1', { dev }, keys)}`,
    });
    await store.transaction((tx) => banDevice(tx, { deviceId: 'stolen', actor: 'test', reason: null }));
    expect(await refusal({ headers: device('stolen') })).toBe('banned');
    expect(await refusal({ headers: device('another') })).toBe('admitted');
    expect(await refusal({ headers: bearer(me.full.value) })).toBe('admitted');
  });
});

describe('an upload token', () => {
  const domain = 'shop.example.com';
  const origin = { origin: `https://${domain}` };
  const uploads = ['key', 'session', 'upload_token'] as const;
  const claimsOf = (tokenId: string, more: object = {}) => ({
    ...{ tokenId, accountId: me.accountId, projectId: me.projectId, domain },
    ...{ maxSizeBytes: 1_000, contentType: null, title: null },
    expiresAt: new Date(clock.now().getTime() + 60_000),
    ...more,
  });
  const withToken = (tokenId: string, more: object = {}, headers: IncomingHttpHeaders = origin) => ({
    auth: uploads,
    headers: { ...bearer(signUploadToken(claimsOf(tokenId, more), keys)), ...headers },
  });
  /** The upload that a token has started. */
  async function started(tokenId: string): Promise<Record<string, string>> {
    const [id, videoId] = [newId('upl'), newId('vid')];
    const prefix = `videos/${videoId}/original/`;
    await store.transaction((tx) =>
      insertUpload(tx, {
        ...{ id, videoId, projectId: me.projectId, accountId: me.accountId, title: 't', fileName: null },
        ...{ declaredBytes: 1, contentType: 'video/mp4', prefix, objectKey: `${prefix}source` },
        ...{ storeUploadId: id, partSizeBytes: 16_777_216, partCount: 1 },
        token: { tokenId, bodyHash: Buffer.alloc(32), maxBytes: 1_000, contentType: null },
      }),
    );
    return { projectId: me.projectId, uploadId: id };
  }
  beforeAll(() => operator.addDomain({ projectId: me.projectId, hostname: domain, verified: true }));

  it('starts one upload, for its project and with its claims', async () => {
    expect(await admission(withToken('start'))).toEqual({
      context: {
        caller: { kind: 'upload_token', accountId: me.accountId, claims: claimsOf('start') },
        project: expect.objectContaining({ id: me.projectId }) as unknown,
        plan: expect.objectContaining({ id: 'agency' }) as unknown,
      },
      jsonOnly: false,
    });
  });

  it.each<[string, () => Asked, string]>([
    ['after its expiry', () => withToken('t', { expiresAt: clock.now() }), 'unauthorized'],
    ['of a project that is gone', () => withToken('t', { projectId: 'prj_gone' }), 'unauthorized'],
    ['for another project', () => ({ ...withToken('t'), params: { projectId: 'prj_x' } }), 'not_found'],
    ['without an origin', () => withToken('t', {}, {}), 'origin_missing'],
    ['with a referer alone', () => withToken('t', {}, { referer: `https://${domain}/` }), 'origin_missing'],
    ['from another page', () => withToken('t', {}, { origin: 'https://evil.example' }), 'domain_mismatch'],
    [
      'of a domain that is not verified',
      () => withToken('t', { domain: 'other.example.com' }, { origin: 'https://other.example.com' }),
      'domain_not_verified',
    ],
    ['on a route that takes none', () => ({ ...withToken('t'), auth: ['key', 'session'] }), 'unauthorized'],
    [
      'where there are no keys for them',
      () => ({
        ...withToken('t'),
        by: createCustomerGuard({
          config: { ...config, UPLOAD_TOKEN_KEYS: undefined },
          store,
          clock,
        }),
      }),
      'unauthorized',
    ],
  ])('%s starts nothing: %s', async (_what, asked, expected) => {
    expect(await refusal(asked())).toBe(expected);
  });

  it('leaves a key a key', async () => {
    expect(await refusal({ auth: uploads, headers: bearer(me.full.value) })).toBe('admitted');
  });

  it('completes what it started, expired and with its domain no longer verified, and nothing else', async () => {
    const params = await started('first');
    const foreign = await started('second');
    const expired = { expiresAt: clock.now() };
    const asked = (tokenId: string, more: object, of = params): Asked => ({
      ...withToken(tokenId, more),
      params: of,
    });
    expect(await refusal(asked('first', expired))).toBe('admitted');
    expect(await refusal(asked('first', {}))).toBe('admitted');
    expect(await refusal(asked('first', {}, foreign))).toBe('not_found');
    expect(await refusal(asked('first', expired, foreign))).toBe('unauthorized');
    expect(await refusal(asked('unspent', {}))).toBe('not_found');
    expect(await refusal(asked('first', {}, { ...params, projectId: 'prj_x' }))).toBe('not_found');
    expect(await refusal({ ...asked('first', {}), headers: withToken('first', {}, {}).headers })).toBe(
      'origin_missing',
    );
    const unverified = { domain: 'gone.example.com' };
    const headers = withToken('first', unverified, { origin: 'https://gone.example.com' }).headers;
    expect(await refusal({ ...asked('first', {}), headers })).toBe('admitted');
  });

  it('of a banned account starts nothing', async () => {
    await operator.banAccount({ accountId: me.accountId, banned: true });
    expect(await refusal(withToken('t'))).toBe('account_banned');
    expect(await refusal({ headers: bearer(me.full.value) })).toBe('account_banned');
    expect(await refusal({ headers: signedIn() })).toBe('account_banned');
    await operator.banAccount({ accountId: me.accountId, banned: false });
  });
});
