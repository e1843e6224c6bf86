import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Upload, type UploadTokenResource, type Video } from '@millrace/contract';
import { type Answer, createTenant, createTestApi, type Tenant } from '../testing/test-api.ts';
import {
  complete,
  createUploadBench,
  MiB,
  type NamedPart,
  put,
  rowsOf,
  start,
  type UploadBench,
  uploadsOf,
} from '../testing/upload-bench.ts';

const GiB = 1024 * MiB;
let bench: UploadBench;
let me: Tenant;
let domain: string;
let tenants = 0;

beforeAll(async () => {
  bench = await createUploadBench();
});
afterAll(() => bench.close());
beforeEach(async () => {
  me = await createTenant(bench.api);
  domain = `shop${++tenants}.example.com`;
  await bench.api.operator.addDomain({ projectId: me.projectId, hostname: domain, verified: true });
});

const make = (body: object = {}, tenant = me): Promise<Answer<UploadTokenResource>> =>
  bench.api.ask<UploadTokenResource>(`POST /v1/projects/${tenant.projectId}/upload-tokens`, {
    bearer: tenant.full,
    body: { domain, ...body },
  });
const tokenOf = async (body: object = {}): Promise<string> => (await make(body)).body.token;

const from = (origin: string | null = `https://${domain}`): Record<string, string> =>
  origin === null ? {} : { origin };
const begin = (token: string, body: object = {}, headers = from(), tenant = me): Promise<Answer<Upload>> =>
  bench.api.ask<Upload>(`POST ${uploadsOf(tenant)}`, {
    bearer: token,
    body: { sizeBytes: 1_000, contentType: 'video/mp4', ...body },
    headers,
  });
const finish = (
  token: string,
  uploadId: string,
  parts: readonly NamedPart[],
  headers = from(),
): Promise<Answer<Video>> =>
  bench.api.ask<Video>(`POST ${uploadsOf(me)}/${uploadId}/complete`, {
    bearer: token,
    body: { parts },
    headers,
  });
const refusal = ({ status, problem }: Answer): [number, string] => [status, problem.code];
const oneUpload = { videos: 1, uploads: 1, prefixes: 1, jobs: 0, events: 0, keys: 0 };

describe('creating an upload token', () => {
  it('answers what it allows, by default for an hour and up to the plan’s file size [UPT-001, UPT-202]', async () => {
    const before = bench.api.now().getTime();
    const { status, body } = await make();
    expect([status, { ...body, token: '', expiresAt: '' }]).toEqual([
      201,
      {
        ...{ token: '', expiresAt: '', projectId: me.projectId, domain, maxSizeBytes: 500 * GiB },
        contentTypes: ['video/mp4', 'video/quicktime', 'video/webm', 'video/x-matroska'],
      },
    ]);
    const lives = Date.parse(body.expiresAt) - before;
    expect(lives).toBeGreaterThanOrEqual(3_600_000);
    expect(lives).toBeLessThan(3_610_000);
  });

  it('answers the limits that it was asked for [UPT-002]', async () => {
    const asked = { maxSizeBytes: 5, contentType: 'video/webm', title: 'Mine', expiresInSeconds: 300 };
    const { body } = await make({ ...asked, domain: domain.toUpperCase() });
    expect(body).toMatchObject({ maxSizeBytes: 5, contentTypes: ['video/webm'], title: 'Mine', domain });
    expect(Date.parse(body.expiresAt) - bench.api.now().getTime()).toBeLessThanOrEqual(300_000);
  });

  it.each<[object, string]>([
    [{ domain: undefined }, 'domain'],
    [{ domain: 'no host' }, 'domain'],
    [{ maxSizeBytes: 0 }, 'maxSizeBytes'],
    [{ contentType: 'video/avi' }, 'contentType'],
    [{ title: '' }, 'title'],
    [{ expiresInSeconds: 299 }, 'expiresInSeconds'],
    [{ expiresInSeconds: 7_201 }, 'expiresInSeconds'],
    [{ other: 1 }, 'other'],
  ])('with %j is 400 and names the field [UPT-204, UPT-206, UPT-205]', async (body, path) => {
    const { status, problem } = await make(body);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
  });

  it('is refused for a domain that is not verified on the project [UPT-201]', async () => {
    const { operator } = bench.api;
    await operator.addDomain({ projectId: me.projectId, hostname: `pending.${domain}` });
    for (const name of [`pending.${domain}`, `sub.${domain}`, 'unknown.example.com']) {
      expect(refusal(await make({ domain: name }))).toEqual([403, 'domain_not_verified']);
    }
    const other = await createTenant(bench.api);
    expect(refusal(await make({}, other))).toEqual([403, 'domain_not_verified']);
  });

  it('is refused above the plan’s file size [UPT-203]', async () => {
    expect(refusal(await make({ maxSizeBytes: 500 * GiB + 1 }))).toEqual([403, 'plan_limit_reached']);
  });

  it.each([
    ['stored', 'stored_ms', 36_000_000],
    ['upload', 'upload_ms', 18_000_000],
  ])('is refused with all %s seconds used, but not before [UPT-208]', async (_kind, column, limitMs) => {
    me = await createTenant(bench.api, 'free');
    await bench.api.operator.addDomain({ projectId: me.projectId, hostname: `x.${domain}`, verified: true });
    const use = (ms: number): Promise<unknown> =>
      bench.api.store.query(`update usage set ${column} = $2 where account_id = $1`, [me.accountId, ms]);
    await use(limitMs);
    expect(refusal(await make({ domain: `x.${domain}` }))).toEqual([403, 'plan_limit_reached']);
    await use(limitMs - 1);
    expect((await make({ domain: `x.${domain}` })).status).toBe(201);
  });

  it('is refused to playback-only keys, and to upload tokens', async () => {
    const request = `POST /v1/projects/${me.projectId}/upload-tokens`;
    const body = { domain };
    expect(refusal(await bench.api.ask(request, { bearer: me.playback, body }))).toEqual([
      403,
      'insufficient_scope',
    ]);
    expect(refusal(await bench.api.ask(request, { bearer: await tokenOf(), body }))[0]).toBe(401);
  });

  it('is 503 where no keys are configured [UPT-207]', async () => {
    const bare = await createTestApi({ config: { UPLOAD_TOKEN_KEYS: undefined } });
    try {
      const tenant = await createTenant(bare);
      const request = `POST /v1/projects/${tenant.projectId}/upload-tokens`;
      const answer = await bare.ask(request, { bearer: tenant.full, body: { domain } });
      expect(refusal(answer)).toEqual([503, 'upload_not_configured']);
    } finally {
      await bare.close();
    }
  });
});

describe('an upload token', () => {
  it('starts an upload with its title, and completes it [UPL-203]', async () => {
    const token = await tokenOf({ title: 'From the token' });
    const { status, body } = await begin(token, { title: 'From the browser' });
    expect([status, body.video.title]).toEqual([201, 'From the token']);
    const done = await finish(token, body.id, [await put(body, 1, Buffer.from('bytes'))]);
    expect([done.status, done.body.status]).toEqual([200, 'processing']);
    expect(done.headers.get('access-control-allow-origin')).toBe(`https://${domain}`);
  });

  it('without a title leaves it to the browser', async () => {
    expect((await begin(await tokenOf(), { title: 'Browser' })).body.video.title).toBe('Browser');
  });

  it('is spent by the first success: the same body gets the same upload, another one 401 [UPT-217, UPT-218]', async () => {
    const token = await tokenOf();
    const first = await begin(token, { fileName: 'a.mp4' });
    const again = await begin(token, { fileName: 'a.mp4' });
    expect([again.status, again.body.id, again.body.parts.length]).toEqual([201, first.body.id, 1]);
    await put(again.body, 1, Buffer.from('still good'));
    expect(refusal(await begin(token, { fileName: 'b.mp4' }))).toEqual([401, 'unauthorized']);
    expect(await rowsOf(bench, me)).toEqual(oneUpload);
  });

  it('tells repeats by itself, whatever the Idempotency-Key [UPT-229]', async () => {
    const withKey = async (token: string, key: string): Promise<Answer<Upload>> =>
      begin(token, {}, { ...from(), 'idempotency-key': key });
    const [mine, theirs] = [await tokenOf(), await tokenOf()];
    const [first, other] = [await withKey(mine, 'k'), await withKey(theirs, 'k')];
    expect([first.status, other.status, other.body.id === first.body.id]).toEqual([201, 201, false]);
    const repeats = [await withKey(mine, 'k'), await withKey(mine, 'another'), await begin(mine)];
    expect(repeats.map(({ body }) => body.id)).toEqual(repeats.map(() => first.body.id));
    const replayed = [first, other, ...repeats].map(({ headers }) => headers.get('idempotency-replayed'));
    expect(replayed).toEqual([null, null, 'true', 'true', 'true']);
    expect(refusal(await withKey(mine, 'x'.repeat(256)))).toEqual([400, 'invalid_request']);
  });

  it('spent ten times at once starts one upload [UPT-215]', async () => {
    const token = await tokenOf();
    const answers = await Promise.all(Array.from({ length: 10 }, () => begin(token)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201));
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    expect(await rowsOf(bench, me)).toEqual(oneUpload);
    const { rows } = await bench.api.store.query<{ id: string }>('select store_upload_id as id from uploads');
    expect((await bench.storeUploads()).filter((id) => !rows.some((row) => row.id === id))).toEqual([]);
  });

  it('is left unspent by a refusal [UPT-216, UPT-224, UPT-225]', async () => {
    const token = await tokenOf({ maxSizeBytes: 5_000, contentType: 'video/mp4' });
    expect(refusal(await begin(token, { sizeBytes: 5_001 }))).toEqual([403, 'plan_limit_reached']);
    expect(refusal(await begin(token, { contentType: 'video/webm' }))).toEqual([400, 'invalid_request']);
    expect(refusal(await begin(token, { sizeBytes: 0 }))).toEqual([400, 'invalid_request']);
    expect((await begin(token, { sizeBytes: 5_000 })).status).toBe(201);
  });

  it('has its cap checked on the real size [UPT-226]', async () => {
    const token = await tokenOf({ maxSizeBytes: 5 });
    const { body } = await begin(token, { sizeBytes: 5 });
    const parts = [await put(body, 1, Buffer.from('six by'))];
    expect(refusal(await finish(token, body.id, parts))).toEqual([403, 'plan_limit_reached']);
    const video = await bench.api.ask<Video>(`GET /v1/projects/${me.projectId}/videos/${body.video.id}`, {
      bearer: me.full,
    });
    expect([video.body.status, video.body.failure?.code]).toEqual(['failed', 'plan_limit_reached']);
  });

  it('binds the content to its type', async () => {
    const bound = async (contentType?: string): Promise<string | null | undefined> => {
      const token = await tokenOf(contentType === undefined ? {} : { contentType });
      const { body } = await begin(token);
      const { rows } = await bench.api.store.query<{ type: string | null }>(
        'select bound_content_type as type from uploads where id = $1',
        [body.id],
      );
      return rows[0]?.type;
    };
    expect(await bound('video/mp4')).toBe('video/mp4');
    expect(await bound()).toBeNull();
  });

  it.each<[string, string | null, string]>([
    ['no origin', null, 'origin_missing'],
    ['another site', 'https://evil.example.com', 'domain_mismatch'],
    ['null', 'null', 'domain_mismatch'],
    ['a port', 'https://DOMAIN:443', 'domain_mismatch'],
    ['http', 'http://DOMAIN', 'domain_mismatch'],
    ['a subdomain', 'https://www.DOMAIN', 'domain_mismatch'],
  ])('from %s is refused on both calls [UPT-211, UPT-212, UPT-213]', async (_what, origin, code) => {
    const headers = { ...from(origin?.replace('DOMAIN', domain) ?? null), referer: `https://${domain}/` };
    const token = await tokenOf();
    expect(refusal(await begin(token, {}, headers))).toEqual([403, code]);
    const { body } = await begin(token);
    const parts = [await put(body, 1, Buffer.from('x'))];
    expect(refusal(await finish(token, body.id, parts, headers))).toEqual([403, code]);
    expect((await finish(token, body.id, parts)).status).toBe(200);
  });

  it('is looked at before the origin, which opens nothing without it [UPT-214]', async () => {
    const token = await tokenOf();
    const { body } = await begin(token);
    const forged = `x${token}`;
    for (const bearer of [forged, me.full.slice(0, -1), '']) {
      for (const headers of [from(null), from('https://evil.example.com'), from()]) {
        expect(refusal(await begin(bearer, {}, headers))).toEqual([401, 'unauthorized']);
        expect(refusal(await finish(bearer, body.id, [], headers))).toEqual([401, 'unauthorized']);
      }
    }
    const anonymous = await bench.api.ask(`POST ${uploadsOf(me)}`, { body: {}, headers: from() });
    expect(refusal(anonymous)).toEqual([401, 'unauthorized']);
  });

  it('is in no log, whatever happens with it [UPT-003]', async () => {
    const token = await tokenOf();
    const { body } = await begin(token);
    await begin(token, {}, from(null));
    await begin(`${token}x`);
    await begin(token, { fileName: 'other.mp4' });
    bench.hooks.beforeComplete = () => {
      throw new Error('the store said no');
    };
    const failed = await finish(token, body.id, [await put(body, 1, Buffer.from('x'))]);
    bench.hooks.beforeComplete = () => undefined;
    expect(failed.status).toBeGreaterThanOrEqual(500);
    expect(bench.api.log.text()).toContain('the store said no');
    expect(token.split('.').filter((part) => bench.api.log.text().includes(part))).toEqual([]);
  });

  it('starts nothing once its domain is no longer verified, but completes what it started [UPT-222, UPT-223]', async () => {
    const [unspent, spent] = [await tokenOf(), await tokenOf()];
    const { body } = await begin(spent);
    await bench.api.store.query('delete from domains where hostname = $1', [domain]);
    expect(refusal(await begin(unspent))).toEqual([403, 'domain_not_verified']);
    expect((await finish(spent, body.id, [await put(body, 1, Buffer.from('x'))])).status).toBe(200);
  });

  it('opens no other route, project or upload [UPT-210]', async () => {
    const token = await tokenOf();
    const { body } = await begin(token);
    const project = `/v1/projects/${me.projectId}`;
    for (const request of [
      ...[`GET ${project}`, `GET ${project}/videos`, `GET ${project}/videos/${body.video.id}`],
      ...[`DELETE ${project}/videos/${body.video.id}`, `GET ${uploadsOf(me)}/${body.id}`],
      ...[`DELETE ${uploadsOf(me)}/${body.id}`, `POST ${project}/videos/${body.video.id}/playback-tokens`],
    ]) {
      const answer = await bench.api.ask(request, { bearer: token, headers: from() });
      expect([request, ...refusal(answer)]).toEqual([request, 401, 'unauthorized']);
    }
    const other = await createTenant(bench.api);
    expect(refusal(await begin(await tokenOf(), {}, from(), other))).toEqual([404, 'not_found']);
    const { body: another } = await start(bench, me);
    expect(refusal(await finish(token, another.id, []))).toEqual([404, 'not_found']);
  });

  it('that is forged or re-spelled is 401 [UPT-228]', async () => {
    const token = await tokenOf();
    for (const bad of [`${token}=`, `x${token}`, token.replace('.', '..'), `${token.slice(0, -1)}!`]) {
      expect(refusal(await begin(bad))).toEqual([401, 'unauthorized']);
    }
  });

  it('of a banned account or a deleted project starts nothing [BAN-001]', async () => {
    const token = await tokenOf();
    await bench.api.operator.banAccount({ accountId: me.accountId, banned: true });
    expect(refusal(await begin(token))).toEqual([403, 'account_banned']);
    await bench.api.operator.banAccount({ accountId: me.accountId, banned: false });
    await bench.api.store.query('update projects set deleted_at = now() where id = $1', [me.projectId]);
    expect(refusal(await begin(token))).toEqual([401, 'unauthorized']);
  });
});

/** The last tests: they move the clock that all of them share. */
describe('an upload token past its expiry', () => {
  it('starts nothing, and completes what it started until that is closed [UPT-219, UPT-220, UPT-221]', async () => {
    const [unspent, spent] = [await tokenOf(), await tokenOf()];
    const { body } = await begin(spent);
    const parts = [await put(body, 1, Buffer.from('x'))];
    bench.api.travel(3_600_001);
    expect(refusal(await begin(unspent))).toEqual([401, 'unauthorized']);
    // Its end comes before its origin (contract UPT-214).
    expect(refusal(await begin(unspent, {}, from(null)))).toEqual([401, 'unauthorized']);
    expect(refusal(await begin(spent))).toEqual([401, 'unauthorized']);
    expect(refusal(await finish(unspent, body.id, parts))).toEqual([401, 'unauthorized']);
    expect((await finish(spent, body.id, parts)).status).toBe(200);
    expect(refusal(await finish(spent, body.id, parts))).toEqual([409, 'upload_closed']);
  });

  it('does not start again what is closed', async () => {
    const token = await tokenOf();
    const { body } = await begin(token);
    await complete(bench, me, body.id, [await put(body, 1, Buffer.from('x'))]);
    expect(refusal(await begin(token))).toEqual([409, 'upload_closed']);
  });
});
