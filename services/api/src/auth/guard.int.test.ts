import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type Ask, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;
let other: Tenant;

beforeAll(async () => {
  api = await createTestApi();
  other = await createTenant(api);
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

const project = (tenant: Tenant): string => `/v1/projects/${tenant.projectId}`;
async function codeOf(request: string, ask: Ask = {}): Promise<string> {
  const { status, problem } = await api.ask(request, ask);
  return status < 400 ? String(status) : `${status} ${problem.code}`;
}

describe('API keys', () => {
  it('open the routes of their project, a playback-only key none of these', async () => {
    expect(await codeOf(`GET ${project(me)}`, { bearer: me.full })).toBe('200');
    expect(await codeOf(`GET ${project(me)}`, { bearer: me.playback })).toBe('403 insufficient_scope');
    expect(await codeOf(`POST ${project(me)}/domains`, { bearer: me.playback, body: {} })).toBe(
      '403 insufficient_scope',
    );
  });

  it('are no credential on a session’s route: 401 for a full key, 403 for a playback-only one [AUT-005, AUT-004]', async () => {
    for (const request of ['GET /v1/projects', `GET ${project(me)}/api-keys`, `DELETE ${project(me)}`]) {
      expect(await codeOf(request, { bearer: me.full })).toBe('401 unauthorized');
      expect(await codeOf(request, { bearer: me.playback })).toBe('403 insufficient_scope');
    }
  });

  it('find nothing outside of their project, whatever their scope [AUT-002]', async () => {
    const second = await api.operator.createProject({ accountId: me.accountId, name: 'Second' });
    for (const projectId of [second.id, other.projectId, 'prj_unknown']) {
      for (const bearer of [me.full, me.playback]) {
        expect(await codeOf(`GET /v1/projects/${projectId}`, { bearer })).toBe('404 not_found');
      }
    }
  });

  it('are refused when wrong in any part, or of another kind [AUT-001]', async () => {
    const [, idPart = '', secret = ''] = me.full.split('_');
    const [, otherId = ''] = other.full.split('_');
    const wrong = [
      '',
      'x',
      idPart,
      secret,
      `svk_${idPart}_${'a'.repeat(43)}`,
      `svk_${otherId}_${secret}`,
      `${me.full} `.repeat(2),
      me.full.toLowerCase(),
      `svk_${'0'.repeat(22)}_${secret}`,
      me.cookie,
    ];
    for (const bearer of wrong)
      expect(await codeOf(`GET ${project(me)}`, { bearer })).toBe('401 unauthorized');
    expect(await codeOf(`GET ${project(me)}`)).toBe('401 unauthorized');
    expect(await codeOf(`GET ${project(me)}`, { headers: { authorization: me.full } })).toBe(
      '401 unauthorized',
    );
    expect(await codeOf(`GET ${project(me)}`, { headers: { authorization: `bEARER ${me.full}` } })).toBe(
      '200',
    );
  });

  it('work until they are revoked or expire, and not a request longer [AUT-011, KEY-206]', async () => {
    const { id: keyId, value } = await api.operator.createApiKey({
      ...{ projectId: me.projectId, name: 'brief', scope: 'full' },
      expiresAt: new Date(api.now().getTime() + 60_000),
    });
    expect(await codeOf(`GET ${project(me)}`, { bearer: value })).toBe('200');
    api.travel(60_000);
    expect(await codeOf(`GET ${project(me)}`, { bearer: value })).toBe('401 unauthorized');
    expect(keyId).toMatch(/^key_/);

    const keys = await api.ask<{ data: { id: string; prefix: string }[] }>(`GET ${project(me)}/api-keys`, me);
    const full = keys.body.data.find((key) => me.full.startsWith(key.prefix));
    expect(await codeOf(`DELETE ${project(me)}/api-keys/${full?.id ?? ''}`, { cookie: me.cookie })).toBe(
      '204',
    );
    expect(await codeOf(`GET ${project(me)}`, { bearer: me.full })).toBe('401 unauthorized');
  });

  it('note when they were used, once a minute at most', async () => {
    const lastUsed = async (): Promise<string | null> => {
      const { body } = await api.ask<{ data: { prefix: string; lastUsedAt: string | null }[] }>(
        `GET ${project(me)}/api-keys`,
        { cookie: me.cookie },
      );
      return body.data.find((key) => me.full.startsWith(key.prefix))?.lastUsedAt ?? null;
    };
    expect(await lastUsed()).toBeNull();
    await api.ask(`GET ${project(me)}`, { bearer: me.full });
    const first = await waitFor(lastUsed);
    await api.ask(`GET ${project(me)}`, { bearer: me.full });
    expect(await lastUsed()).toBe(first);
    api.travel(60_000);
    await api.ask(`GET ${project(me)}`, { bearer: me.full });
    await waitFor(async () => (await lastUsed()) !== first);
  });

  it('beat a cookie, also when they are wrong [AUT-009]', async () => {
    expect(await codeOf(`GET ${project(me)}`, { bearer: me.playback, cookie: me.cookie })).toBe(
      '403 insufficient_scope',
    );
    expect(await codeOf(`GET ${project(me)}`, { bearer: 'wrong', cookie: me.cookie })).toBe(
      '401 unauthorized',
    );
    const headers = { authorization: 'Basic eDp5' };
    expect(await codeOf(`GET ${project(me)}`, { cookie: me.cookie, headers })).toBe('200');
  });
});

describe('sessions', () => {
  it('open every project of their account and no other [AUT-006]', async () => {
    const second = await api.operator.createProject({ accountId: me.accountId, name: 'Second' });
    expect(await codeOf(`GET ${project(me)}`, { cookie: me.cookie })).toBe('200');
    expect(await codeOf(`GET /v1/projects/${second.id}`, { cookie: me.cookie })).toBe('200');
    expect(await codeOf('GET /v1/projects', { cookie: me.cookie })).toBe('200');
    for (const request of ['GET', 'PATCH', 'DELETE'].map((method) => `${method} ${project(other)}`)) {
      expect(await codeOf(request, { cookie: me.cookie })).toBe('404 not_found');
    }
  });

  it('are refused when unknown, and found among other cookies', async () => {
    for (const cookie of ['', 'x', `${me.cookie}x`, 'ses_' + 'a'.repeat(43), me.full]) {
      expect(await codeOf(`GET ${project(me)}`, { cookie })).toBe('401 unauthorized');
    }
    const headers = { cookie: `a=b; svc_session_old=x; svc_session=${me.cookie}; c=d` };
    expect(await codeOf(`GET ${project(me)}`, { headers })).toBe('200');
  });

  it('live 7 days after their last use, and 30 days at most [SES-003, SES-004]', async () => {
    const day = 86_400_000;
    const { cookie } = await api.operator.createSession({ userId: me.userId });
    const works = async (): Promise<boolean> => (await codeOf(`GET ${project(me)}`, { cookie })) === '200';
    const seenNow = (): Promise<unknown> =>
      waitFor(async () => {
        const { rows } = await api.store.query<{ seen: Date }>(
          'select max(last_seen_at) as seen from sessions where user_id = $1',
          [me.userId],
        );
        return (rows[0]?.seen.getTime() ?? 0) >= api.now().getTime() - 60_000;
      });
    for (let age = 0; age < 30; age += 6) {
      expect(await works()).toBe(true);
      await seenNow();
      api.travel(6 * day);
    }
    expect(await works()).toBe(false);

    const idle = await api.operator.createSession({ userId: me.userId });
    api.travel(7 * day);
    expect(await codeOf(`GET ${project(me)}`, { cookie: idle.cookie })).toBe('401 unauthorized');
  });

  it.each<[string, Record<string, string>, string]>([
    ['without an Origin', {}, '200'],
    ['from the dashboard', { origin: 'https://app.example.com' }, '200'],
    ['from the API’s own origin', { origin: 'https://api.example.com' }, '200'],
    ['from the dashboard’s host over http', { origin: 'http://app.example.com' }, '401 unauthorized'],
    ['from another port of it', { origin: 'https://app.example.com:8443' }, '401 unauthorized'],
    ['from a subdomain of it', { origin: 'https://x.app.example.com' }, '401 unauthorized'],
    ['from elsewhere', { origin: 'https://evil.example' }, '401 unauthorized'],
    ['from a sandboxed page', { origin: 'null' }, '401 unauthorized'],
    ['cross-site by the browser’s word', { 'sec-fetch-site': 'cross-site' }, '401 unauthorized'],
    ['same-site by the browser’s word', { 'sec-fetch-site': 'same-site' }, '200'],
  ])('change things %s: %s [SES-005, SES-006]', async (_what, headers, expected) => {
    const ask = { cookie: me.cookie, headers, body: { name: 'New' } };
    expect(await codeOf(`PATCH ${project(me)}`, ask)).toBe(expected);
    // Reading changes nothing; the browser keeps the answer from a foreign page (CORS).
    expect(await codeOf(`GET ${project(me)}`, { cookie: me.cookie, headers })).toBe('200');
  });

  it('need JSON that says so; keys do not [SES-007, SES-008]', async () => {
    const ask = { headers: { 'content-type': 'text/plain' }, body: '{"hostname":"plain.example"}' };
    const request = `POST ${project(me)}/domains`;
    expect(await codeOf(request, { ...ask, cookie: me.cookie })).toBe('415 unsupported_media_type');
    expect(await codeOf(request, { ...ask, bearer: me.full })).toBe('201');
    const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'x=y' };
    expect(await codeOf(`DELETE ${project(me)}`, { ...form, cookie: me.cookie })).toBe(
      '415 unsupported_media_type',
    );
  });
});

describe('bans', () => {
  it('hold from the next request on for every credential, and until they are lifted [BAN-001]', async () => {
    await api.operator.banAccount({ accountId: me.accountId, banned: true, reason: 'fraud' });
    for (const ask of [{ bearer: me.full }, { bearer: me.playback }, { cookie: me.cookie }]) {
      expect(await codeOf(`GET ${project(me)}`, ask)).toBe('403 account_banned');
      expect(await codeOf(`GET ${project(other)}`, ask)).toBe('403 account_banned');
    }
    await api.operator.banAccount({ accountId: me.accountId, banned: false });
    expect(await codeOf(`GET ${project(me)}`, { bearer: me.full })).toBe('200');
  });
});

describe('order of checks', () => {
  // Each request fails this check and every later one.
  it('401, ban, project, scope, type, body, limit [AUT-010]', async () => {
    const bad = { headers: { 'content-type': 'text/plain' }, body: '{' };
    const at = (tenant: Tenant): string => `POST ${project(tenant)}/domains`;
    expect(await codeOf(at(other), { ...bad, bearer: 'wrong' })).toBe('401 unauthorized');
    await api.operator.banAccount({ accountId: me.accountId, banned: true });
    expect(await codeOf(at(other), { ...bad, bearer: me.playback })).toBe('403 account_banned');
    await api.operator.banAccount({ accountId: me.accountId, banned: false });
    expect(await codeOf(at(other), { ...bad, bearer: me.playback })).toBe('404 not_found');
    expect(await codeOf(at(me), { ...bad, bearer: me.playback })).toBe('403 insufficient_scope');
    expect(await codeOf(at(me), { ...bad, cookie: me.cookie })).toBe('415 unsupported_media_type');

    const free = await createTenant(api, 'free');
    const json = { cookie: free.cookie, body: { name: 1, branding: { hideLogo: true } } };
    expect(await codeOf(`PATCH ${project(free)}`, json)).toBe('400 invalid_request');
    expect(await codeOf(`PATCH ${project(free)}`, { ...json, body: { ...json.body, name: 'ok' } })).toBe(
      '403 plan_limit_reached',
    );
  });

  it('limit before state: a full plan hears of its limit, not of the name [AUT-010]', async () => {
    const free = await createTenant(api, 'free');
    await api.operator.addDomain({ projectId: free.projectId, hostname: 'limit.example', verified: true });
    const ask = { bearer: free.full, body: { hostname: 'limit.example' } };
    expect(await codeOf(`POST ${project(free)}/domains`, ask)).toBe('403 plan_limit_reached');
  });
});

describe('the internal port', () => {
  it('has none of the customers’ routes, and the public port none of its own [ADM-004]', async () => {
    expect(await codeOf('GET internal:/v1/projects', { cookie: me.cookie })).toBe('404 not_found');
    for (const path of ['/admin/videos/vid_1/hold', '/internal/playback-state/vid_1', '/metrics', '/ready']) {
      expect(await codeOf(`GET ${path}`, { bearer: me.full })).toBe('404 not_found');
    }
  });
});

describe('secrets', () => {
  it('are in no log line', async () => {
    await api.ask(`GET ${project(me)}?token=${me.full}`, { bearer: me.full });
    await api.ask('GET /nothing', { cookie: me.cookie });
    await api.ask(`POST ${project(me)}/domains`, { bearer: me.full, body: { hostname: me.full } });
    const logged = api.log.text();
    for (const secret of [me.full, me.cookie, me.playback, other.full]) {
      expect(logged).not.toContain(secret.slice(-20));
    }
  });
});
