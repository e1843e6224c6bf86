import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Project, topics } from '@millrace/contract';
import { createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

interface Page {
  data: Project[];
  nextCursor: string | null;
}
const create = (tenant: Tenant, body: unknown) =>
  api.ask<Project>('POST /v1/projects', { cookie: tenant.cookie, body });
const list = (tenant: Tenant, query = '') =>
  api.ask<Page>(`GET /v1/projects${query}`, { cookie: tenant.cookie });
const patch = (tenant: Tenant, body: unknown) =>
  api.ask<Project>(`PATCH /v1/projects/${tenant.projectId}`, { cookie: tenant.cookie, body });

/** Straight into the record: how a video comes to be is another feature's. */
const addVideo = (tenant: Tenant): Promise<unknown> =>
  api.store.query(
    `insert into videos (id, project_id, account_id, title, status, size_bytes, created_at, updated_at)
     values ($1, $2, $3, 'x', 'ready', 1, now(), now())`,
    [`vid_${tenant.projectId}`, tenant.projectId, tenant.accountId],
  );

/** The states of a project that CDN processes were told, oldest first. */
async function told(projectId: string): Promise<unknown[]> {
  const { rows } = await api.store.query<{ value: unknown; version: number }>(
    'select value, version from outbox where key = $1 and topic = $2 order by id',
    [projectId, topics.playbackState.name],
  );
  return rows.map(({ value, version }) => {
    const message = topics.playbackState.schema.parse(value);
    expect(message).toMatchObject({ kind: 'project', state: { version } });
    return message.kind === 'project' ? message.state : null;
  });
}

describe('create', () => {
  it('answers 201 with the project [PRJ-001, PRJ-003, PRJ-204]', async () => {
    const tenant = await createTenant(api);
    const { status, body } = await create(tenant, { name: 'Ümläut 日本 😀' });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^prj_[A-Za-z0-9]{22}$/) as unknown,
      name: 'Ümläut 日本 😀',
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown,
      whiteLabel: true,
      branding: { hideLogo: false, primaryColor: null, logoUrl: null },
    });
    const read = await api.ask(`GET /v1/projects/${body.id}`, { cookie: tenant.cookie });
    expect(read).toMatchObject({ status: 200, body });
  });

  it.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: ' \t' }, 'name'],
    [{ name: 'a\u0000b' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'a', color: 'red' }, 'color'],
  ])('%j is 400 naming %s [PRJ-201]', async (body, path) => {
    const { status, problem } = await create(await createTenant(api), body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  });

  it('stops at the plan’s limit, also when asked all at once [PRJ-202, LIM-104, SVC-006]', async () => {
    for (let round = 0; round < 5; round++) {
      const tenant = await createTenant(api, 'starter');
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => create(tenant, { name: `P${i}` })),
      );
      const outcomes = answers.map(({ status, problem }) => (status === 201 ? 'created' : problem.code));
      expect(outcomes.sort()).toEqual([
        ...Array.from({ length: 2 }, () => 'created'),
        ...Array.from({ length: 6 }, () => 'plan_limit_reached'),
      ]);
      expect((await list(tenant)).body.data).toHaveLength(3);
    }
  });

  it('counts a canceled account by the free plan, and a deleted project not at all [ACC-103]', async () => {
    const tenant = await createTenant(api, 'starter');
    const second = await create(tenant, { name: 'Second' });
    await api.operator.setPlan({ accountId: tenant.accountId, planId: 'starter', planStatus: 'canceled' });
    expect((await create(tenant, { name: 'Third' })).problem.code).toBe('plan_limit_reached');
    for (const id of [second.body.id, tenant.projectId]) {
      expect((await api.ask(`DELETE /v1/projects/${id}`, { cookie: tenant.cookie })).status).toBe(204);
    }
    expect((await create(tenant, { name: 'Third' })).status).toBe(201);
  });
});

describe('list', () => {
  let tenant: Tenant;
  const names = Array.from({ length: 25 }, (_, i) => `Project ${i}`);
  beforeAll(async () => {
    tenant = await createTenant(api);
    // At once, so that many share their millisecond.
    await Promise.all(names.map((name) => create(tenant, { name })));
  });

  it.each([1, 7, 20, 26, 100])(
    'gives each project exactly once, newest first, %i at a time [PAG-001, PAG-004, PRJ-203]',
    async (limit) => {
      const seen: Project[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const page: Page = (await list(tenant, `?limit=${limit}${query}`)).body;
        expect(page.data.length).toBeLessThanOrEqual(limit);
        seen.push(...page.data);
        cursor = page.nextCursor;
      }
      expect(new Set(seen.map(({ id }) => id)).size).toBe(names.length + 1);
      expect(seen.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
      const times = seen.map(({ createdAt }) => createdAt);
      expect(times).toEqual([...times].sort().reverse());
    },
  );

  it('has 20 in a page unless told [PAG-002]', async () => {
    const { body } = await list(tenant);
    expect(body.data).toHaveLength(20);
    expect(typeof body.nextCursor).toBe('string');
  });

  it.each(['limit=0', 'limit=101', 'limit=-1', 'limit=1.5', 'limit=', 'limit=abc', 'limit=1e1', 'cursor='])(
    '?%s is 400 [PAG-002]',
    async (query) => {
      const { status, problem } = await list(tenant, `?${query}`);
      expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([
        400,
        'invalid_request',
        query.split('=')[0],
      ]);
    },
  );

  it('refuses a cursor of another account, a changed one and a made-up one [PAG-005]', async () => {
    const { nextCursor } = (await list(tenant, '?limit=1')).body;
    const cursor = encodeURIComponent(nextCursor ?? '');
    expect((await list(tenant, `?limit=2&cursor=${cursor}`)).status).toBe(200);
    const other = await createTenant(api);
    expect((await list(other, `?cursor=${cursor}`)).problem.code).toBe('invalid_request');
    const madeUp = Buffer.from(JSON.stringify({ t: 0, i: tenant.projectId })).toString('base64url');
    for (const forged of [`${cursor}x`, cursor.slice(0, -1), 'x', madeUp, `${madeUp}.${madeUp}`]) {
      const { status, problem } = await list(tenant, `?cursor=${forged}`);
      expect([status, problem.code]).toEqual([400, 'invalid_request']);
    }
  });
});

describe('update', () => {
  it('changes what is given and nothing else [PRJ-205]', async () => {
    const tenant = await createTenant(api);
    const branding = { hideLogo: true, primaryColor: '#Aa00fF', logoUrl: 'https://cdn.example.com/logo.svg' };
    expect((await patch(tenant, { branding })).body.branding).toEqual(branding);
    expect((await patch(tenant, { name: 'New' })).body).toMatchObject({ name: 'New', branding });
    const cleared = await patch(tenant, { branding: { logoUrl: null, hideLogo: false } });
    expect(cleared.body.branding).toEqual({ ...branding, logoUrl: null, hideLogo: false });
    // What the CDN is told: a whole state each time, with a rising version, and nothing of a name.
    expect(await told(tenant.projectId)).toEqual([
      { projectId: tenant.projectId, version: 2, branding },
      { projectId: tenant.projectId, version: 4, branding: { ...branding, logoUrl: null, hideLogo: false } },
    ]);
    expect((await patch(tenant, {})).body).toEqual(cleared.body);
  });

  it.each<[unknown, string]>([
    [{ branding: { primaryColor: 'red' } }, 'branding.primaryColor'],
    [{ branding: { primaryColor: '#12345' } }, 'branding.primaryColor'],
    [{ branding: { primaryColor: '#123456\n' } }, 'branding.primaryColor'],
    [{ branding: { logoUrl: 'http://cdn.example.com/x' } }, 'branding.logoUrl'],
    [{ branding: { logoUrl: 'javascript:alert(1)' } }, 'branding.logoUrl'],
    [{ branding: { logoUrl: 'https://me:secret@cdn.example.com/x' } }, 'branding.logoUrl'],
    [{ branding: { logoUrl: 'https://cdn.example.com/\nx' } }, 'branding.logoUrl'],
    [{ branding: { logoUrl: ' https://cdn.example.com/x' } }, 'branding.logoUrl'],
    [{ branding: { logoUrl: `https://cdn.example.com/${'x'.repeat(2_048)}` } }, 'branding.logoUrl'],
    [{ branding: { hideLogo: 'yes' } }, 'branding.hideLogo'],
    [{ branding: { theme: 'x' } }, 'branding.theme'],
    [{ branding: null }, 'branding'],
    [{ name: null }, 'name'],
    [{ id: 'prj_1' }, 'id'],
  ])('%j is 400 naming %s [PRJ-004, PRJ-207]', async (body, path) => {
    const { status, problem } = await patch(await createTenant(api), body);
    expect([status, problem.errors?.[0]?.path]).toEqual([400, path]);
  });

  it('brands with white label only; after a downgrade it shows the service’s own until the plan is back [PRJ-206, PRJ-002, PRJ-005]', async () => {
    const free = await createTenant(api, 'free');
    expect((await patch(free, { name: 'x', branding: {} })).problem.code).toBe('plan_limit_reached');
    expect((await patch(free, { name: 'x' })).status).toBe(200);

    const tenant = await createTenant(api, 'pro');
    const branding = { hideLogo: true, primaryColor: '#000000', logoUrl: null };
    await patch(tenant, { branding });
    await api.operator.setPlan({ accountId: tenant.accountId, planId: 'starter' });
    const ask = { cookie: tenant.cookie };
    expect((await api.ask(`GET /v1/projects/${tenant.projectId}`, ask)).body).toMatchObject({
      whiteLabel: false,
      branding: { hideLogo: false, primaryColor: null, logoUrl: null },
    });
    await api.operator.setPlan({ accountId: tenant.accountId, planId: 'pro' });
    expect((await api.ask(`GET /v1/projects/${tenant.projectId}`, ask)).body).toMatchObject({ branding });
  });
});

describe('delete', () => {
  it('is 409 while the project has videos [PRJ-208]', async () => {
    const tenant = await createTenant(api);
    await addVideo(tenant);
    const { status, problem } = await api.ask(`DELETE /v1/projects/${tenant.projectId}`, {
      cookie: tenant.cookie,
    });
    expect([status, problem.code]).toEqual([409, 'project_not_empty']);
    expect((await api.ask(`GET /v1/projects/${tenant.projectId}`, { bearer: tenant.full })).status).toBe(200);
  });

  it('ends the project, its keys and its domains; deleted videos do not keep it [PRJ-209]', async () => {
    const tenant = await createTenant(api);
    await addVideo(tenant);
    await api.store.query('update videos set deleted_at = now() where project_id = $1', [tenant.projectId]);
    await api.operator.addDomain({ projectId: tenant.projectId, hostname: 'gone.example', verified: true });
    const path = `/v1/projects/${tenant.projectId}`;
    expect((await api.ask(`DELETE ${path}`, { cookie: tenant.cookie })).status).toBe(204);
    expect((await api.ask(`DELETE ${path}`, { cookie: tenant.cookie })).status).toBe(404);
    expect((await api.ask(`GET ${path}`, { cookie: tenant.cookie })).status).toBe(404);
    expect((await api.ask(`GET ${path}`, { bearer: tenant.full })).status).toBe(401);
    expect((await list(tenant)).body.data).toEqual([]);
    const other = await createTenant(api);
    const again = { bearer: other.full, body: { hostname: 'gone.example' } };
    expect((await api.ask(`POST /v1/projects/${other.projectId}/domains`, again)).status).toBe(201);
  });
});
