import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type ApiKey } from '@millrace/contract';
import { createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let tenant: Tenant;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  tenant = await createTenant(api);
});

type Created = ApiKey & { value: string };
const path = (): string => `/v1/projects/${tenant.projectId}/api-keys`;
const create = (body: unknown) => api.ask<Created>(`POST ${path()}`, { cookie: tenant.cookie, body });
const list = async (): Promise<ApiKey[]> =>
  (await api.ask<{ data: ApiKey[] }>(`GET ${path()}`, { cookie: tenant.cookie })).body.data;
const revoke = (id: string, of = tenant) => api.ask(`DELETE ${path()}/${id}`, { cookie: of.cookie });
const day = 86_400_000;

describe('create', () => {
  it('answers 201 with the record and, this once, its value [KEY-001, KEY-004, KEY-201]', async () => {
    const { status, body } = await create({ name: 'Server' });
    expect(status).toBe(201);
    const { value, ...record } = body;
    expect(value).toMatch(/^svk_[A-Za-z0-9]{22}_[A-Za-z0-9]{43}$/);
    expect(record).toEqual({
      id: expect.stringMatching(/^key_/) as unknown,
      name: 'Server',
      scope: 'full',
      prefix: value.slice(0, 26),
      createdAt: expect.any(String) as unknown,
      lastUsedAt: null,
      expiresAt: null,
      revokedAt: null,
    });
    expect((await list())[0]).toEqual(record);
  });

  it('keeps the hash of a secret alone: no list and no row has the value [KEY-205, AUT-012]', async () => {
    const { value, ...record } = (await create({ name: 'Server' })).body;
    expect(JSON.stringify(await list())).not.toContain(value.slice(-43));
    const { rows } = await api.store.query<{ row: string }>(
      'select k::text as row from api_keys k where id = $1',
      [record.id],
    );
    expect(rows[0]?.row).not.toContain(value.slice(-43));
    expect(rows[0]?.row).toContain(createHash('sha256').update(value.slice(-43)).digest('hex'));
  });

  it('takes scope and expiry, in any offset, and is a full one for ever unless told [KEY-002, KEY-202]', async () => {
    const { body } = await create({ name: 'a', scope: 'playback', expiresAt: '2999-01-01T02:00:00+02:00' });
    expect(body).toMatchObject({ scope: 'playback', expiresAt: '2999-01-01T00:00:00.000Z' });
    const plain = await create({ name: 'a', expiresAt: null });
    expect(plain.body).toMatchObject({ scope: 'full', expiresAt: null });
  });

  it.each([
    [{ scope: 'full' }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'a', scope: 'admin' }, 'scope'],
    [{ name: 'a', expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [{ name: 'a', expiresAt: 'tomorrow' }, 'expiresAt'],
    [{ name: 'a', expiresAt: '2999-02-30T00:00:00Z' }, 'expiresAt'],
    [{ name: 'a', expiresAt: 32503680000 }, 'expiresAt'],
    [{ name: 'a', value: 'svk_x' }, 'value'],
  ])('%j is 400 naming %s [KEY-203, KEY-208]', async (body, at) => {
    const { status, problem } = await create(body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', at]);
  });

  it('stops at 50 active keys, also when asked all at once; revoked and expired ones do not count [KEY-204]', async () => {
    const soon = new Date(api.now().getTime() + day).toISOString();
    const first = await create({ name: 'first', expiresAt: soon });
    const answers = await Promise.all(Array.from({ length: 52 }, (_, i) => create({ name: `k${i}` })));
    const created = answers.filter(({ status }) => status === 201);
    // The tenant was born with two, and one was made above.
    expect(created).toHaveLength(47);
    expect(answers.find(({ status }) => status !== 201)?.problem).toMatchObject({
      status: 403,
      code: 'plan_limit_reached',
    });
    expect((await revoke(created[0]?.body.id ?? '')).status).toBe(204);
    expect((await create({ name: 'again' })).status).toBe(201);
    expect((await create({ name: 'too many' })).status).toBe(403);
    expect(first.status).toBe(201);
    api.travel(day);
    const { cookie } = await api.operator.createSession({ userId: tenant.userId });
    expect((await api.ask(`POST ${path()}`, { cookie, body: { name: 'again' } })).status).toBe(201);
  });
});

describe('revoke', () => {
  it('is 204, again too, and keeps the first time; the key stays listed for 30 days [KEY-207]', async () => {
    const { body: key } = await create({ name: 'a' });
    expect((await revoke(key.id)).status).toBe(204);
    const revokedAt = (await list()).find(({ id }) => id === key.id)?.revokedAt;
    expect(typeof revokedAt).toBe('string');
    api.travel(1_000);
    expect((await revoke(key.id)).status).toBe(204);
    expect((await list()).find(({ id }) => id === key.id)?.revokedAt).toBe(revokedAt);
    api.travel(30 * day);
    const { cookie } = await api.operator.createSession({ userId: tenant.userId });
    const later = await api.ask<{ data: ApiKey[] }>(`GET ${path()}`, { cookie });
    expect(later.body.data.map(({ id }) => id)).not.toContain(key.id);
    expect(later.body.data).toHaveLength(2);
  });

  it('finds no key of another project or account [KEY-005, SVC-005]', async () => {
    const { body: key } = await create({ name: 'a' });
    const second = await api.operator.createProject({ accountId: tenant.accountId, name: 'Second' });
    const other = await createTenant(api);
    expect((await revoke(key.id, other)).status).toBe(404);
    const inSecond = `DELETE /v1/projects/${second.id}/api-keys/${key.id}`;
    expect((await api.ask(inSecond, { cookie: tenant.cookie })).status).toBe(404);
    const inOther = `DELETE /v1/projects/${other.projectId}/api-keys/${key.id}`;
    expect((await api.ask(inOther, { cookie: other.cookie })).status).toBe(404);
    expect((await revoke('key_unknown')).status).toBe(404);
    expect((await api.ask(`GET /v1/projects/${tenant.projectId}`, { bearer: key.value })).status).toBe(200);
  });
});
