import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isInternal, type RouteDefinition, routes } from '@millrace/contract';
import { createDatabase } from '@millrace/store';
import { captureLogger, waitFor } from '@millrace/testing';
import { createApi } from './service.ts';
import {
  adminToken,
  type Ask,
  createTenant,
  createTestApi,
  internalSecret,
  type Tenant,
  type TestApi,
} from './testing/test-api.ts';

let api: TestApi;
let me: Tenant;
let other: Tenant;
beforeAll(async () => {
  api = await createTestApi();
  [me, other] = [await createTenant(api), await createTenant(api)];
});
afterAll(() => api.close());

const all = Object.entries(routes as Record<string, RouteDefinition>);
const fill = (path: string, tenant: Tenant): string =>
  path.replace('{projectId}', tenant.projectId).replaceAll(/\{(\w+)Id\}/g, (_all, name: string) => {
    if (name === 'boot') return '0'.repeat(32);
    const prefixes: Record<string, string> = {
      ...{ domain: 'dom', key: 'key', video: 'vid', upload: 'upl', job: 'job' },
      ...{ endpoint: 'whe', delivery: 'del', account: 'acc' },
    };
    return `${prefixes[name] ?? name}_0000000000000000000000`;
  });
async function codeOf(route: RouteDefinition, tenant: Tenant, ask: Ask = {}): Promise<string> {
  const port = isInternal(route) ? 'internal:' : '';
  const answer = await api.ask(`${route.method.toUpperCase()} ${port}${fill(route.path, tenant)}`, ask);
  return answer.status < 400 ? String(answer.status) : `${answer.status} ${answer.problem.code}`;
}

describe('every route that needs a credential', () => {
  const guarded = all.filter(([, route]) => route.auth.length > 0);

  it.each(guarded)(
    '%s is 401 without one, and with one of another kind [AUT-001, AUT-014]',
    async (_id, route) => {
      const wrong: Ask[] = [{}, { bearer: 'x' }, { cookie: 'x' }, { headers: { 'x-internal-secret': 'x' } }];
      if (isInternal(route)) wrong.push({ bearer: me.full }, { cookie: me.cookie });
      else wrong.push({ bearer: adminToken }, { headers: { 'x-internal-secret': internalSecret } });
      if (route.auth.includes('admin')) wrong.push({ headers: { 'x-internal-secret': internalSecret } });
      if (route.auth.includes('internal')) wrong.push({ bearer: adminToken });
      for (const ask of wrong) expect(await codeOf(route, me, ask)).toBe('401 unauthorized');
    },
  );

  it.each(guarded.filter(([, route]) => isInternal(route)))(
    '%s is on the internal port only, and passes its own credential',
    async (_id, route) => {
      const ask: Ask = route.auth.includes('admin')
        ? { bearer: adminToken, ...(route.method === 'get' ? {} : { body: {} }) }
        : { headers: { 'x-internal-secret': internalSecret } };
      const hidden = await api.ask(`${route.method.toUpperCase()} ${fill(route.path, me)}`, ask);
      expect(hidden.status).toBe(404);
      // Past the guard: the list, what is not there, or the body's own fault.
      expect(await codeOf(route, me, ask)).toMatch(/^(200|404 not_found|400 invalid_request)$/);
    },
  );
});

describe('every route of the account', () => {
  const ofAccount = all.filter(
    ([id, { path }]) =>
      /^\/v1\/(me|billing)(\/(?!callbacks)|$)/.test(path) ||
      path.includes('/api-keys') ||
      ['createProject', 'listProjects', 'updateProject', 'deleteProject'].includes(id),
  );

  it.each(ofAccount)('%s takes a session, and no key [AUT-007]', async (_id, route) => {
    const body = ['post', 'put', 'patch'].includes(route.method) ? { body: { nothing: true } } : {};
    expect(await codeOf(route, me, { bearer: me.full, ...body })).toBe('401 unauthorized');
    expect(await codeOf(route, me, { bearer: me.playback, ...body })).toBe('403 insufficient_scope');
    // Past the guard, for deleting a project on one that can go.
    const gone = await api.operator.createProject({ accountId: me.accountId, name: 'Gone' });
    const code = await codeOf(route, { ...me, projectId: gone.id }, { cookie: me.cookie, ...body });
    expect(code).toMatch(/^(200|204|400 invalid_request|404 not_found|503 billing_paused)$/);
  });
});

describe('every route of a project', () => {
  const ofProject = all.filter(([, { path }]) => path.startsWith('/v1/projects/{projectId}'));

  it.each(ofProject)(
    '%s is 404 on another account’s project, whatever the body [AUT-008]',
    async (_id, route) => {
      expect(await codeOf(route, other, { cookie: me.cookie })).toBe('404 not_found');
      if (route.auth.includes('key')) {
        expect(await codeOf(route, other, { bearer: me.full })).toBe('404 not_found');
      }
      expect(await codeOf(route, other, { bearer: me.playback })).toBe('404 not_found');
    },
  );

  it.each(ofProject)('%s lets a playback-only key in only where it says so [AUT-004]', async (_id, route) => {
    const code = await codeOf(route, me, { bearer: me.playback });
    if (route.keyScope === 'playback') expect(code).not.toMatch(/^40[13]/);
    else expect(code).toBe('403 insufficient_scope');
  });
});

describe('the record away', () => {
  it('costs at most nothing when it comes back while all is idle (h-db-01)', async () => {
    const killer = createDatabase({
      connectionString: api.connectionString,
      max: 1,
      logger: captureLogger().logger,
    });
    await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full });
    // Nothing is asked meanwhile: a request could take the dead connections first. One that is at work, for what
    // requests leave to do, is waited for: it would not be lost while idle.
    const isLost = async (): Promise<boolean> => {
      await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and state = 'idle'`,
      );
      return api.log.lines.some(({ message }) => message === 'database connection lost while idle');
    };
    await waitFor(isLost, { timeoutMs: 60_000, what: 'an idle connection to be lost' });
    await killer.close();
    expect((await api.ask(`GET /v1/projects/${me.projectId}`, { bearer: me.full })).status).toBe(200);
  });

  it('is 503 with Retry-After, and /health says so [ERR-007, API-204]', async () => {
    const log = captureLogger();
    const away = createDatabase({ connectionString: 'postgres://127.0.0.1:1/x', logger: log.logger });
    const lonely = createApi({ ...api.deps, store: away, logger: log.logger });
    await lonely.start(new AbortController().signal);
    try {
      const answer = await fetch(`${lonely.listening}/v1/projects/prj_1`, {
        headers: { authorization: `Bearer ${me.full}` },
      });
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
      const text = await answer.text();
      expect(JSON.parse(text)).toMatchObject({ code: 'service_unavailable' });
      expect(text).not.toMatch(/127\.0\.0\.1|ECONNREFUSED/);
      expect((await fetch(`${lonely.listening}/health`)).status).toBe(503);
      expect((await fetch(`${api.url}/health`)).status).toBe(200);
    } finally {
      await lonely.stop();
      await away.close();
    }
  });
});

describe('health', () => {
  it('is ready while it listens', async () => {
    const second = createApi(api.deps);
    expect(second.health().ready).toBe(false);
    expect(() => second.listening).toThrow('does not listen yet');
    await second.start(new AbortController().signal);
    expect(second.health()).toEqual({ healthy: true, ready: true, checks: { http: 'ok' } });
    await second.stop();
    expect(second.health().ready).toBe(false);
  });

  it('answers HEAD too, and only what it promises [CNV-026]', async () => {
    expect((await api.ask('HEAD /health')).status).toBe(200);
    expect((await api.ask('GET /health')).body).toEqual({ status: 'ok' });
  });
});
