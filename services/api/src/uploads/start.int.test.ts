import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type RouteDefinition, routes, type Upload } from '@millrace/contract';
import { unknownUploads } from '@millrace/store';
import { createTenant, type Tenant } from '../testing/test-api.ts';
import {
  createUploadBench,
  MiB,
  nothing,
  put,
  rowsOf,
  start,
  type UploadBench,
  uploadsOf,
} from '../testing/upload-bench.ts';

const GiB = 1024 * MiB;
const day = 86_400_000;

let bench: UploadBench;
let me: Tenant;

beforeAll(async () => {
  bench = await createUploadBench();
});
afterAll(() => bench.close());
beforeEach(async () => {
  bench.hooks.afterCreate = () => undefined;
  me = await createTenant(bench.api);
});

describe('starting an upload', () => {
  it('creates a video in uploading and a URL for each part, good for at least 24 hours [UPL-001, UPL-200, VID-101]', async () => {
    const before = Date.now();
    const { status, body } = await start(bench, me, { sizeBytes: 16 * MiB + 1, title: 'Holiday' });
    expect(status).toBe(201);
    expect(body.video).toMatchObject({
      projectId: me.projectId,
      title: 'Holiday',
      status: 'uploading',
      sizeBytes: 16 * MiB + 1,
      qualities: [],
      failure: null,
      readyAt: null,
      durationSeconds: null,
      accessMode: 'protected',
    });
    expect(body.partSizeBytes).toBe(16 * MiB);
    expect(body.parts.map((part) => part.partNumber)).toEqual([1, 2]);
    expect(Date.parse(body.expiresAt) - before).toBeGreaterThanOrEqual(day);
    expect(Date.parse(body.expiresAt) - before).toBeLessThan(day + 600_000);
    await put(body, 2, Buffer.from('x'));
    expect(await rowsOf(bench, me)).toEqual({ ...nothing, videos: 1, uploads: 1, prefixes: 1 });
  });

  it('leaves the bytes to the store: the API has no way in for them [SVC-004]', async () => {
    const { body } = await start(bench, me, { sizeBytes: 40 * MiB });
    const [publicApi, api] = [bench.api.deps.config.API_URL, bench.api.url].map((url) => new URL(url).origin);
    for (const { partNumber, url } of body.parts) {
      expect([publicApi, api]).not.toContain(new URL(url).origin);
      await put(body, partNumber, Buffer.from('x'));
      const { pathname, search } = new URL(url);
      const sent = await fetch(`${bench.api.url}${pathname}${search}`, { method: 'PUT', body: 'x' });
      expect(sent.status).toBe(404);
    }
    const bodies = Object.values<RouteDefinition>(routes).map(({ rawBody }) => rawBody?.maxBytes ?? 0);
    expect(Math.max(...bodies)).toBe(MiB);
  });

  it('signs 8,000 URLs for the largest file of the largest plan [UPL-002, UPL-006]', async () => {
    const { status, body } = await start(bench, me, { sizeBytes: 500 * GiB });
    expect(status).toBe(201);
    expect(body.partSizeBytes).toBe(64 * MiB);
    expect(body.parts.map((part) => part.partNumber)).toEqual(Array.from({ length: 8_000 }, (_, n) => n + 1));
    expect(new Set(body.parts.map((part) => part.url)).size).toBe(8_000);
  });

  it('names a video after its title, else its file [UPL-203]', async () => {
    const titleFrom = async (body: object): Promise<string> =>
      (await start(bench, me, body)).body.video.title;
    expect(await titleFrom({ title: 'Mine', fileName: 'theirs.mp4' })).toBe('Mine');
    expect(await titleFrom({ fileName: 'My\tfilm.2024.mov' })).toBe('My film.2024');
    expect(await titleFrom({})).toBe('Untitled');
  });

  it('is for sessions too, and not for playback-only keys', async () => {
    const body = { sizeBytes: 1, contentType: 'video/webm' };
    const request = `POST ${uploadsOf(me)}`;
    expect((await bench.api.ask(request, { cookie: me.cookie, body })).status).toBe(201);
    const { status, problem } = await bench.api.ask(request, { bearer: me.playback, body });
    expect([status, problem.code]).toEqual([403, 'insufficient_scope']);
  });
});

describe('a refused start', () => {
  const leavesNothing = async (): Promise<void> => {
    expect(await rowsOf(bench, me)).toEqual(nothing);
    const { rows } = await bench.api.store.query<{ id: string }>('select store_upload_id as id from uploads');
    // Whatever is open in the store belongs to another test's row.
    expect((await bench.storeUploads()).filter((id) => !rows.some((row) => row.id === id))).toEqual([]);
  };

  it.each<[string, object, string]>([
    ['no size', { sizeBytes: undefined }, 'sizeBytes'],
    ['a size of zero', { sizeBytes: 0 }, 'sizeBytes'],
    ['a size as text', { sizeBytes: '1000' }, 'sizeBytes'],
    ['a fractional size', { sizeBytes: 1.5 }, 'sizeBytes'],
    ['a size beyond integers', { sizeBytes: 1e300 }, 'sizeBytes'],
    ['no content type', { contentType: undefined }, 'contentType'],
    ['another content type', { contentType: 'video/avi' }, 'contentType'],
    ['an empty title', { title: '' }, 'title'],
    ['a blank title', { title: ' \u00a0 ' }, 'title'],
    ['a title of 201 characters', { title: '🎬'.repeat(201) }, 'title'],
    ['NUL in the title', { title: 'a\u0000b' }, 'title'],
    ['a lone surrogate in the title', { title: 'a\ud800b' }, 'title'],
    ['a title that is null', { title: null }, 'title'],
    ['a file name of 256 characters', { fileName: 'x'.repeat(256) }, 'fileName'],
    ['NUL in the file name', { fileName: 'a\u0000.mp4' }, 'fileName'],
    ['an unknown field', { sizeByte: 5 }, 'sizeByte'],
  ])('with %s is 400 and names the field [UPL-201, UPL-202, UPL-204]', async (_what, fields, path) => {
    const { status, problem } = await start(bench, me, fields);
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
    await leavesNothing();
  });

  it.each(['{"sizeBytes": 1000', 'null', '[]', '"text"', ''])('with the body %j is 400', async (body) => {
    const { status, problem } = await bench.api.ask(`POST ${uploadsOf(me)}`, { bearer: me.full, body });
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
    await leavesNothing();
  });

  it('over the plan’s file size is 403 and names the size [UPL-207, LIM-102]', async () => {
    me = await createTenant(bench.api, 'free');
    const { status, problem } = await start(bench, me, { sizeBytes: 5 * GiB + 1 });
    expect([status, problem.code]).toEqual([403, 'plan_limit_reached']);
    expect(problem.errors?.map((error) => error.path)).toEqual(['sizeBytes']);
    await leavesNothing();
    expect((await start(bench, me, { sizeBytes: 5 * GiB })).status).toBe(201);
  });

  it.each([
    ['stored', 'stored_ms', 36_000_000],
    ['upload', 'upload_ms', 18_000_000],
  ])(
    'with all %s seconds used is 403; one millisecond less is enough [LIM-101]',
    async (_kind, column, limitMs) => {
      me = await createTenant(bench.api, 'free');
      const use = (ms: number): Promise<unknown> =>
        bench.api.store.query(`update usage set ${column} = $2 where account_id = $1`, [me.accountId, ms]);
      await use(limitMs);
      const { status, problem } = await start(bench, me);
      expect([status, problem.code]).toEqual([403, 'plan_limit_reached']);
      await leavesNothing();
      await use(limitMs - 1);
      expect((await start(bench, me)).status).toBe(201);
    },
  );

  it('counts a canceled account by the free plan', async () => {
    await bench.api.operator.setPlan({ accountId: me.accountId, planId: 'agency', planStatus: 'canceled' });
    const { problem } = await start(bench, me, { sizeBytes: 5 * GiB + 1 });
    expect(problem.code).toBe('plan_limit_reached');
  });

  it('into a project that was deleted meanwhile is 404', async () => {
    bench.hooks.afterCreate = async () => {
      await bench.api.ask(`DELETE /v1/projects/${me.projectId}`, { cookie: me.cookie });
    };
    const { status, problem } = await start(bench, me);
    expect([status, problem.code]).toEqual([404, 'not_found']);
    await leavesNothing();
  });

  it('into a project of another account is 404 [AUT-008]', async () => {
    const other = await createTenant(bench.api);
    const { status } = await start(bench, { ...me, projectId: other.projectId });
    expect(status).toBe(404);
    expect(await rowsOf(bench, other)).toEqual(nothing);
  });
});

describe('an Idempotency-Key', () => {
  const withKey = (key: string, body: object = {}) => start(bench, me, body, { 'idempotency-key': key });

  it('lets twenty twins at once make one video [IDK-006]', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => withKey('twenty')));
    expect(answers.map((answer) => answer.status)).toEqual(Array.from({ length: 20 }, () => 201));
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get('idempotency-replayed') === 'true')).toHaveLength(
      19,
    );
    expect(await rowsOf(bench, me)).toEqual({ ...nothing, videos: 1, uploads: 1, prefixes: 1, keys: 1 });
  });

  it('replays the first body with part URLs that work [IDK-001, IDK-009]', async () => {
    const first = await withKey('again', { title: 'First' });
    await bench.api.ask(`PATCH /v1/projects/${me.projectId}/videos/${first.body.video.id}`, {
      bearer: me.full,
      body: { title: 'Renamed' },
    });
    const replay = await withKey('again', { title: 'First' });
    const bare = ({ parts, ...rest }: Upload): unknown => ({ ...rest, parts: parts.length });
    expect(bare(replay.body)).toEqual(bare(first.body));
    await put(replay.body, 1, Buffer.from('x'));
  });

  it('refuses another body with 422, and does not keep a refusal [IDK-004, IDK-007]', async () => {
    await withKey('other');
    const { status, problem } = await withKey('other', { sizeBytes: 2_000 });
    expect([status, problem.code]).toEqual([422, 'invalid_request']);
    me = await createTenant(bench.api, 'free');
    expect((await withKey('refused', { sizeBytes: 6 * GiB })).status).toBe(403);
    expect((await withKey('refused', { sizeBytes: 6 * GiB })).status).toBe(403);
    expect(await rowsOf(bench, me)).toEqual(nothing);
    expect((await withKey('refused')).status).toBe(201);
  });
});

describe('a crash between store and record', () => {
  it('leaves an upload in the store that no row names, for the sweep', async () => {
    bench.hooks.afterCreate = () => {
      throw new Error('the process died here');
    };
    const before = await bench.storeUploads();
    expect((await start(bench, me)).status).toBe(500);
    expect(await rowsOf(bench, me)).toEqual(nothing);
    const left = (await bench.storeUploads()).filter((id) => !before.includes(id));
    expect(left).toHaveLength(1);
    const orphans = left.map((uploadId) => ({ key: 'any', uploadId }));
    expect(await unknownUploads(bench.api.store, orphans)).toEqual(orphans);
  });
});
