import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Domain } from '@millrace/contract';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());

const path = (tenant: Tenant): string => `/v1/projects/${tenant.projectId}/domains`;
const add = (tenant: Tenant, hostname: unknown): Promise<Answer<Domain>> =>
  api.ask<Domain>(`POST ${path(tenant)}`, { bearer: tenant.full, body: { hostname } });
const verify = (tenant: Tenant, domain: Domain): Promise<Answer<Domain>> =>
  api.ask<Domain>(`POST ${path(tenant)}/${domain.id}/verify`, { bearer: tenant.full });
const list = async (tenant: Tenant): Promise<Domain[]> =>
  (await api.ask<{ data: Domain[] }>(`GET ${path(tenant)}`, { bearer: tenant.full })).body.data;
const prove = ({ verification }: Domain): void => {
  api.dns.set(verification.name, 'TXT', [verification.value]);
};
const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;

let names = 0;
const newName = (): string => `host${++names}.example`;
/** Added and proved, but not verified yet. */
async function addProved(tenant: Tenant, hostname = newName()): Promise<Domain> {
  const { body } = await add(tenant, hostname);
  prove(body);
  return body;
}

describe('add', () => {
  it('answers 201 with the record to create [DOM-001, DOM-002, DOM-202]', async () => {
    const tenant = await createTenant(api);
    const { status, body } = await add(tenant, 'Videos.Example.com.');
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^dom_[A-Za-z0-9]{22}$/) as unknown,
      hostname: 'videos.example.com',
      status: 'pending',
      verification: {
        type: 'TXT',
        name: '_svc-verify.videos.example.com',
        value: expect.stringMatching(/^svc-verify=[0-9a-f]{32}$/) as unknown,
      },
      createdAt: expect.any(String) as unknown,
      verifiedAt: null,
      lastCheck: null,
    });
    expect(await list(tenant)).toEqual([body]);
    const asSession = await api.ask(`GET ${path(tenant)}`, { cookie: tenant.cookie });
    expect(asSession.body).toEqual({ data: [body] });
  });

  it.each([undefined, null, 7, '', 'a\u0000.example', 'localhost', '10.0.0.1', 'example.com:8080', 'co.uk'])(
    '%j is 400 naming the field',
    async (hostname) => {
      const answer = await add(await createTenant(api), hostname);
      expect(outcome(answer)).toBe('400 invalid_request');
      expect(answer.problem.errors?.[0]?.path).toBe('hostname');
    },
  );

  it('takes every spelling of a name for one (h-domain-04) [DOM-201, DOM-203]', async () => {
    const tenant = await createTenant(api);
    const spellings = ['bücher.example', 'BÜCHER.example', 'xn--bcher-kva.example', 'xn--bcher-kva.example.'];
    const outcomes = await Promise.all(spellings.map(async (name) => outcome(await add(tenant, name))));
    expect(outcomes.sort()).toEqual([
      '201',
      '409 hostname_taken',
      '409 hostname_taken',
      '409 hostname_taken',
    ]);
    expect((await list(tenant)).map(({ hostname }) => hostname)).toEqual(['xn--bcher-kva.example']);
  });

  it('is 409 in the same account in any state and any project, and where another has it verified [DOM-205, DOM-206, DOM-207]', async () => {
    const [mine, theirs] = [await createTenant(api), await createTenant(api)];
    const domain = await addProved(mine);
    const second = await api.operator.createProject({ accountId: mine.accountId, name: 'Second' });
    const inSecond = { cookie: mine.cookie, body: { hostname: domain.hostname } };
    expect(outcome(await api.ask(`POST /v1/projects/${second.id}/domains`, inSecond))).toBe(
      '409 hostname_taken',
    );
    expect(outcome(await add(theirs, domain.hostname))).toBe('201');
    const third = await createTenant(api);
    await verify(mine, domain);
    expect(outcome(await add(third, domain.hostname))).toBe('409 hostname_taken');
    await api.store.query(`update domains set status = 'lapsed' where id = $1`, [domain.id]);
    expect(outcome(await add(third, domain.hostname))).toBe('201');
    expect(outcome(await add(mine, domain.hostname))).toBe('409 hostname_taken');
  });

  it('takes at most 100 names that are not verified, and lists them all [PAG-007, DOM-215]', async () => {
    const tenant = await createTenant(api);
    await api.store.query(
      `insert into domains (id, project_id, account_id, hostname, challenge, created_at)
       select 'dom_fill' || i, $1, $2, 'fill' || i || '.example', 'x', now() from generate_series(1, 99) i`,
      [tenant.projectId, tenant.accountId],
    );
    expect(outcome(await add(tenant, newName()))).toBe('201');
    expect(outcome(await add(tenant, newName()))).toBe('403 plan_limit_reached');
    const { body } = await api.ask<{ data: Domain[] }>(`GET ${path(tenant)}`, { bearer: tenant.full });
    expect([Object.keys(body), body.data.length]).toEqual([['data'], 100]);
  });
});

describe('verify', () => {
  it('finds the record, and says what it found [DOM-004, DOM-005, DOM-209]', async () => {
    const tenant = await createTenant(api);
    const domain = await addProved(tenant);
    const { status, body } = await verify(tenant, domain);
    expect(status).toBe(200);
    expect(body).toEqual({
      ...domain,
      status: 'verified',
      verifiedAt: expect.any(String) as unknown,
      lastCheck: { at: body.verifiedAt, found: [domain.verification.value] },
    });
    expect(await list(tenant)).toEqual([body]);
  });

  it('sees a record as soon as it is there, though its absence may be cached for long (h-domain-03) [DOM-101]', async () => {
    const tenant = await createTenant(api);
    const { body: domain } = await add(tenant, newName());
    const early = await verify(tenant, domain);
    expect(early.body).toMatchObject({ status: 'pending', verifiedAt: null, lastCheck: { found: [] } });
    prove(domain);
    expect((await verify(tenant, domain)).body.status).toBe('verified');
  });

  it('finds it behind 15 long records (h-domain-01)', async () => {
    const tenant = await createTenant(api);
    const { body: domain } = await add(tenant, newName());
    const long = Array.from({ length: 15 }, (_, i) => `${i} `.padEnd(250, 'x'));
    api.dns.set(domain.verification.name, 'TXT', [...long, domain.verification.value]);
    expect((await verify(tenant, domain)).body.status).toBe('verified');
  });

  it('joins the strings of one record but not two records (h-domain-02) [DOM-211]', async () => {
    const tenant = await createTenant(api);
    const { body: domain } = await add(tenant, newName());
    const { name, value } = domain.verification;
    const halves = [value.slice(0, 20), value.slice(20)];
    api.dns.set(name, 'TXT', halves);
    const apart = await verify(tenant, domain);
    expect(apart.body.status).toBe('pending');
    expect([...(apart.body.lastCheck?.found ?? [])].sort()).toEqual([...halves].sort());
    api.dns.set(name, 'TXT', [halves]);
    expect((await verify(tenant, domain)).body.status).toBe('verified');
  });

  it.each([
    ['another value', (value: string) => `${value}0`],
    ['a part of it', (value: string) => value.slice(0, -1)],
    ['the value within more', (value: string) => `x ${value}`],
    ['another case', (value: string) => value.toUpperCase()],
    ['the bare hex', (value: string) => value.slice('svc-verify='.length)],
  ])('is not content with %s', async (_what, change) => {
    const tenant = await createTenant(api);
    const { body: domain } = await add(tenant, newName());
    api.dns.set(domain.verification.name, 'TXT', [change(domain.verification.value)]);
    expect((await verify(tenant, domain)).body.status).toBe('pending');
  });

  it('shows foreign records shortened and without control characters', async () => {
    const tenant = await createTenant(api);
    const { body: domain } = await add(tenant, newName());
    const many = Array.from({ length: 30 }, (_, i) => `${i}\n\u0000${'y'.repeat(300)}`);
    api.dns.set(domain.verification.name, 'TXT', many);
    const { found = [] } = (await verify(tenant, domain)).body.lastCheck ?? {};
    expect(found).toHaveLength(20);
    expect(found.every((text) => text.length === 255 && /^\d+\ufffd\ufffdy+$/.test(text))).toBe(true);
  });

  it.each(['servfail', 'refused'] as const)(
    'changes nothing when the name server answers %s',
    async (fault) => {
      const tenant = await createTenant(api);
      const domain = await addProved(tenant);
      api.dns.fault(domain.verification.name, fault);
      expect((await verify(tenant, domain)).body).toMatchObject({
        status: 'pending',
        lastCheck: { found: [] },
      });
      api.dns.fault(domain.verification.name, null);
      expect((await verify(tenant, domain)).body.status).toBe('verified');
    },
  );

  it('keeps a verified domain when the record is gone, and verifies a lapsed one again [DOM-003, DOM-104]', async () => {
    const tenant = await createTenant(api);
    const domain = await addProved(tenant);
    const first = await verify(tenant, domain);
    api.dns.set(domain.verification.name, 'TXT', []);
    api.travel(1_000);
    const kept = await verify(tenant, domain);
    expect(kept.body).toMatchObject({
      status: 'verified',
      verifiedAt: first.body.verifiedAt,
      lastCheck: { found: [] },
    });
    await api.store.query(`update domains set status = 'lapsed', missing_since = now() where id = $1`, [
      domain.id,
    ]);
    expect((await verify(tenant, domain)).body.status).toBe('lapsed');
    prove(domain);
    const again = await verify(tenant, domain);
    expect(again.body.status).toBe('verified');
    expect(again.body.verifiedAt).not.toBe(first.body.verifiedAt);
    const { rows } = await api.store.query<{ missing: Date | null }>(
      'select missing_since as missing from domains where id = $1',
      [domain.id],
    );
    expect(rows).toEqual([{ missing: null }]);
  });

  it('gives a name to nobody without proof, and to the first who proves it (h-domain-05) [DOM-208]', async () => {
    const [a, b] = [await createTenant(api), await createTenant(api)];
    const ofA = (await add(a, newName())).body;
    const ofB = (await add(b, ofA.hostname)).body;
    expect(ofA.verification.value).not.toBe(ofB.verification.value);
    prove(ofA);
    expect((await verify(b, ofB)).body.status).toBe('pending');
    expect((await verify(a, ofA)).body.status).toBe('verified');
    // With proof, but too late: who has it verified keeps it.
    api.dns.set(ofB.verification.name, 'TXT', [ofA.verification.value, ofB.verification.value]);
    const late = await verify(b, ofB);
    expect(outcome(late)).toBe('409 hostname_taken');
    const [row] = await list(b);
    expect(row).toMatchObject({
      status: 'pending',
      lastCheck: { found: expect.arrayContaining([ofB.verification.value]) as unknown },
    });
    expect((await list(a))[0]?.status).toBe('verified');
  });

  it('gives a name to one of two who prove it at the same time [DOM-208]', async () => {
    for (let round = 0; round < 10; round++) {
      const tenants = [await createTenant(api), await createTenant(api)];
      const hostname = newName();
      const domains = await Promise.all(tenants.map(async (tenant) => (await add(tenant, hostname)).body));
      api.dns.set(
        `_svc-verify.${hostname}`,
        'TXT',
        domains.map(({ verification }) => verification.value),
      );
      const outcomes = await Promise.all(
        tenants.map(async (tenant, i) => outcome(await verify(tenant, domains[i] as Domain))),
      );
      expect(outcomes.sort()).toEqual(['200', '409 hostname_taken']);
    }
  });
});

describe('the limit of verified domains', () => {
  it('counts at add and at verify, over all projects, and not what waits [DOM-213]', async () => {
    const tenant = await createTenant(api, 'starter');
    const second = await api.operator.createProject({ accountId: tenant.accountId, name: 'Second' });
    const waiting = [];
    for (let i = 0; i < 4; i++) waiting.push(await addProved(tenant));
    await api.operator.addDomain({ projectId: second.id, hostname: newName(), verified: true });
    const outcomes = await Promise.all(waiting.map(async (domain) => outcome(await verify(tenant, domain))));
    expect(outcomes.sort()).toEqual(['200', '200', '403 plan_limit_reached', '403 plan_limit_reached']);
    expect(outcome(await add(tenant, newName()))).toBe('403 plan_limit_reached');
    // One that is verified can still be looked up.
    const verified = (await list(tenant)).find(({ status }) => status === 'verified') as Domain;
    expect(outcome(await verify(tenant, verified))).toBe('200');
    await api.ask(`DELETE ${path(tenant)}/${verified.id}`, { bearer: tenant.full });
    expect(outcome(await add(tenant, newName()))).toBe('201');
  });

  it('goes by today’s plan; a downgrade takes nothing away [LIM-108, LIM-109]', async () => {
    const tenant = await createTenant(api, 'starter');
    const domains = [await addProved(tenant), await addProved(tenant), await addProved(tenant)];
    for (const domain of domains.slice(0, 2)) await verify(tenant, domain);
    await api.operator.setPlan({ accountId: tenant.accountId, planId: 'free' });
    expect((await list(tenant)).filter(({ status }) => status === 'verified')).toHaveLength(2);
    expect(outcome(await verify(tenant, domains[2] as Domain))).toBe('403 plan_limit_reached');
  });
});

describe('remove', () => {
  it('is 204 once, then 404, and frees the name, for which no token is given [DOM-214]', async () => {
    const [mine, theirs] = [await createTenant(api), await createTenant(api)];
    const domain = await addProved(mine);
    await verify(mine, domain);
    const remove = () => api.ask(`DELETE ${path(mine)}/${domain.id}`, { bearer: mine.full });
    const token = { bearer: mine.full, body: { domain: domain.hostname } };
    const createToken = () => api.ask(`POST /v1/projects/${mine.projectId}/upload-tokens`, token);
    expect(outcome(await createToken())).toBe('201');
    expect((await remove()).status).toBe(204);
    expect(outcome(await createToken())).toBe('403 domain_not_verified');
    expect(outcome(await remove())).toBe('404 not_found');
    expect(outcome(await verify(mine, domain))).toBe('404 not_found');
    expect(outcome(await add(theirs, domain.hostname))).toBe('201');
  });

  it('and verify find no domain of another project [SVC-005]', async () => {
    const [mine, theirs] = [await createTenant(api), await createTenant(api)];
    const { body: domain } = await add(mine, newName());
    for (const request of [
      `DELETE ${path(theirs)}/${domain.id}`,
      `POST ${path(theirs)}/${domain.id}/verify`,
    ]) {
      expect(outcome(await api.ask(request, { bearer: theirs.full }))).toBe('404 not_found');
    }
    for (const id of ['vid_1', 'dom_', 'dom_a-b', 'dom_%00']) {
      const status = id.includes('%') ? 400 : 404;
      expect((await api.ask(`DELETE ${path(mine)}/${id}`, { bearer: mine.full })).status).toBe(status);
    }
    expect(await list(mine)).toEqual([domain]);
  });
});
