import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type IngestReport, type Video, videoStatuses } from '@millrace/contract';
import { createHoldCommands } from '@millrace/store';
import { finishEncode, seedVideo } from '../testing/seed-video.ts';
import { type Answer, createTenant, createTestApi, type Tenant, type TestApi } from '../testing/test-api.ts';

let api: TestApi;
let me: Tenant;

beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  me = await createTenant(api);
});

interface VideoPage {
  data: Video[];
  nextCursor: string | null;
}

const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const videos = (tenant: Tenant = me): string => `/v1/projects/${tenant.projectId}/videos`;
const get = (videoId: string, bearer = me.full): Promise<Answer<Video>> =>
  api.ask<Video>(`GET ${videos()}/${videoId}`, { bearer });
const patch = (videoId: string, body: unknown): Promise<Answer<Video>> =>
  api.ask<Video>(`PATCH ${videos()}/${videoId}`, { bearer: me.full, body });
const list = (query: Record<string, string> = {}): Promise<Answer<VideoPage>> =>
  api.ask<VideoPage>(`GET ${videos()}?${new URLSearchParams(query).toString()}`, { bearer: me.full });
const titles = async (query: Record<string, string>): Promise<string[]> =>
  (await list(query)).body.data.map((video) => video.title);

async function walk(query: Record<string, string>): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let pages = 0;
  for (let cursor: string | null | undefined; cursor !== null; pages++) {
    const page = await list(cursor === undefined ? query : { ...query, cursor });
    expect(page.status).toBe(200);
    ids.push(...page.body.data.map((video) => video.id));
    cursor = page.body.nextCursor;
  }
  return { ids, pages };
}

describe('getting a video', () => {
  it('answers every field, also to a playback-only key [VID-001, VID-201, CNV-007]', async () => {
    const videoId = await seedVideo(api.store, me, { qualities: ['360p', '720p', '1080p'] });
    const { status, body } = await get(videoId, me.playback);
    expect(status).toBe(200);
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(body).toEqual({
      id: videoId,
      projectId: me.projectId,
      title: 'Seeded',
      status: 'ready',
      durationSeconds: 10,
      qualities: ['360p', '720p', '1080p'],
      sizeBytes: 1000,
      failure: null,
      createdAt: time,
      updatedAt: time,
      readyAt: time,
      accessMode: 'protected',
    });
  });

  it.each(['uploading', 'processing'] as const)('plays nothing in %s [VID-006]', async (status) => {
    const videoId = await seedVideo(api.store, me, { status });
    await api.store.query(`update videos set qualities = '{720p}' where id = $1`, [videoId]);
    const { body } = await get(videoId);
    expect(body).toMatchObject({ status, qualities: [], failure: null });
  });

  it('says why a video failed [VID-011, VID-006, CNV-005]', async () => {
    const { body } = await get(await seedVideo(api.store, me, { status: 'failed' }));
    expect(body).toMatchObject({
      status: 'failed',
      failure: { code: 'invalid_file', message: 'It failed.' },
      qualities: [],
      readyAt: null,
    });
  });

  it('shows the qualities that today’s plan allows [VID-008, VID-009, ACC-101]', async () => {
    const videoId = await seedVideo(api.store, me, {
      qualities: ['360p', '720p', '1080p', '1440p', '2160p'],
    });
    const seen = async (
      planId: string,
      planStatus: 'active' | 'canceled' | 'past_due',
    ): Promise<string[]> => {
      await api.operator.setPlan({ accountId: me.accountId, planId, planStatus });
      return (await get(videoId)).body.qualities;
    };
    expect(await seen('agency', 'active')).toEqual(['360p', '720p', '1080p', '1440p', '2160p']);
    expect(await seen('starter', 'active')).toEqual(['360p', '720p', '1080p']);
    expect(await seen('free', 'active')).toEqual(['360p', '720p']);
    expect(await seen('pro', 'past_due')).toEqual(['360p', '720p', '1080p', '1440p', '2160p']);
    expect(await seen('pro', 'canceled')).toEqual(['360p', '720p']);
  });

  it('is 404 for other accounts, other projects and what never was [AUT-008, ERR-101, SVC-005]', async () => {
    const other = await createTenant(api);
    const theirs = await seedVideo(api.store, other);
    for (const id of [theirs, 'vid_unknown', 'vid_0000000000000000000000']) {
      for (const [method, tail] of [
        ['GET', ''],
        ['PATCH', ''],
        ['DELETE', ''],
        ['GET', '/ingest-report'],
        ['POST', '/playback-tokens'],
      ] as const) {
        const body = method === 'POST' ? { domain: 'example.com' } : method === 'PATCH' ? {} : undefined;
        const answer = await api.ask(`${method} ${videos()}/${id}${tail}`, { bearer: me.full, body });
        expect(outcome(answer)).toBe('404 not_found');
      }
    }
  });

  it.each(['%', '%FF', '%E0%A4%A', 'vid_%00'])('refuses the path …/videos/%s with 400', async (id) => {
    expect(outcome(await get(id))).toBe('400 invalid_request');
  });
});

describe('listing videos', () => {
  it('gives each of 250 videos of one burst exactly once, in pages of 1, 7 and 100 [PAG-003]', async () => {
    const now = new Date();
    // Many of the same millisecond: only the id tells them apart.
    const ids = await Promise.all(
      Array.from({ length: 250 }, (_, index) =>
        seedVideo(api.store, me, { status: 'uploading', createdAt: new Date(now.getTime() - (index % 3)) }),
      ),
    );
    for (const limit of [1, 7, 100]) {
      const walked = await walk({ limit: String(limit) });
      expect(walked.ids.toSorted()).toEqual(ids.toSorted());
      expect(walked.pages).toBe(Math.ceil(250 / limit));
    }
  }, 120_000);

  it('is newest first, 20 a page unless told, without deleted videos [VID-202, PAG-001, PAG-002]', async () => {
    const at = (minute: number): Date => new Date(Date.UTC(2025, 0, 1, 0, minute));
    for (let minute = 0; minute < 22; minute++) {
      await seedVideo(api.store, me, { status: 'uploading', title: `v${minute}`, createdAt: at(minute) });
    }
    const { body } = await list();
    expect(body.data.map((video) => video.title)).toEqual(
      Array.from({ length: 20 }, (_, index) => `v${21 - index}`),
    );
    await api.ask(`DELETE ${videos()}/${body.data[0]?.id ?? ''}`, { bearer: me.full });
    expect((await titles({ limit: '1' }))[0]).toBe('v20');
  });

  it('filters by status [VID-203]', async () => {
    for (const status of ['uploading', 'processing', 'ready', 'failed'] as const) {
      await seedVideo(api.store, me, { status, title: status });
    }
    for (const status of videoStatuses) {
      expect(await titles({ status })).toEqual(status === 'held' ? [] : [status]);
    }
  });

  it('finds a literal part of the title in any case [VID-204]', async () => {
    for (const title of ['Straße 100% fertig', 'ПРИВЕТ мир', 'under_score', 'back\\slash', "quote'd"]) {
      await seedVideo(api.store, me, { status: 'uploading', title });
    }
    expect(await titles({ q: '0% FER' })).toEqual(['Straße 100% fertig']);
    expect(await titles({ q: '%' })).toEqual(['Straße 100% fertig']);
    expect(await titles({ q: '_' })).toEqual(['under_score']);
    expect(await titles({ q: 'привет МИР' })).toEqual(['ПРИВЕТ мир']);
    expect(await titles({ q: '\\' })).toEqual(['back\\slash']);
    expect(await titles({ q: "e'D" })).toEqual(["quote'd"]);
    expect(await titles({ q: 'nothing' })).toEqual([]);
    expect(await titles({ q: '' })).toHaveLength(5);
  });

  it('takes createdFrom as inclusive and createdTo as exclusive [VID-205]', async () => {
    const instant = (second: number): string => new Date(Date.UTC(2025, 5, 1, 0, 0, second)).toISOString();
    for (const second of [1, 2, 3]) {
      const createdAt = new Date(instant(second));
      await seedVideo(api.store, me, { status: 'uploading', title: String(second), createdAt });
    }
    expect(await titles({ createdFrom: instant(2) })).toEqual(['3', '2']);
    expect(await titles({ createdTo: instant(2) })).toEqual(['1']);
    expect(await titles({ createdFrom: instant(2), createdTo: instant(3) })).toEqual(['2']);
    expect(await titles({ createdFrom: instant(2), createdTo: instant(2) })).toEqual([]);
    expect(await titles({ createdFrom: '2025-06-01T03:00:02+03:00' })).toEqual(['3', '2']);
  });

  it.each<[Record<string, string>, string]>([
    [{ limit: '0' }, 'limit'],
    [{ limit: '101' }, 'limit'],
    [{ limit: 'ten' }, 'limit'],
    [{ status: 'deleted' }, 'status'],
    [{ createdFrom: 'yesterday' }, 'createdFrom'],
    [{ createdTo: '2025-13-01T00:00:00Z' }, 'createdTo'],
    [{ createdFrom: '2025-02-01T00:00:00Z', createdTo: '2025-01-01T00:00:00Z' }, 'createdFrom'],
    [{ q: 'x'.repeat(201) }, 'q'],
    [{ cursor: 'forged' }, 'cursor'],
    [{ cursor: '' }, 'cursor'],
  ])('refuses %j with 400 and names the field [VID-206, PAG-002]', async (query, path) => {
    const { status, problem } = await list(query);
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });

  it.each(['q', 'search'])('refuses NUL in the query, in %s', async (name) => {
    const answer = await api.ask(`GET ${videos()}?${name}=%00`, { bearer: me.full });
    expect([outcome(answer), answer.problem.errors?.[0]?.path]).toEqual(['400 invalid_request', 'query']);
  });

  it('ignores unknown parameters [CNV-010]', async () => {
    expect((await list({ colour: 'blue' })).status).toBe(200);
  });

  it('binds a cursor to its project and its filters [PAG-006]', async () => {
    for (const title of ['one', 'two']) await seedVideo(api.store, me, { status: 'uploading', title });
    const { body } = await list({ limit: '1', status: 'uploading' });
    const cursor = body.nextCursor ?? '';
    // Videos of one millisecond have no promised order: the second page has the one that the first had not.
    const pages = [...body.data, ...(await list({ cursor, status: 'uploading' })).body.data];
    expect(pages.map((video) => video.title).sort()).toEqual(['one', 'two']);
    for (const filters of [{}, { status: 'ready' }, { status: 'uploading', q: 'o' }]) {
      expect(outcome(await list({ cursor, ...filters }))).toBe('400 invalid_request');
    }
    const second = await api.operator.createProject({ accountId: me.accountId, name: 'Second' });
    const foreign = `GET /v1/projects/${second.id}/videos?status=uploading&cursor=${cursor}`;
    expect(outcome(await api.ask(foreign, { cookie: me.cookie }))).toBe('400 invalid_request');
  });
});

describe('changing a video', () => {
  it('changes what is given; updatedAt rises each time, strictly [VID-207, VID-014]', async () => {
    const videoId = await seedVideo(api.store, me);
    const before = (await get(videoId)).body;
    const seen = [before.updatedAt];
    // Ahead of the clock: the next change must still be later.
    await api.store.query(
      `update videos set updated_at = date_trunc('milliseconds', clock_timestamp()) + interval '1 hour' where id = $1`,
      [videoId],
    );
    seen.push((await get(videoId)).body.updatedAt);
    for (const body of [{ title: 'New' }, { posterAtSeconds: 2.5 }, { posterAtSeconds: null }]) {
      const answer = await patch(videoId, body);
      expect(answer.status).toBe(200);
      seen.push(answer.body.updatedAt);
    }
    expect(seen).toEqual([...new Set(seen)].toSorted());
    expect((await get(videoId)).body).toEqual({ ...before, title: 'New', updatedAt: seen.at(-1) });
  });

  it('keeps the poster’s moment for the encoder, or leaves it the choice [VID-211]', async () => {
    const videoId = await seedVideo(api.store, me);
    for (const posterAtSeconds of [10, null]) {
      await patch(videoId, { posterAtSeconds });
      const { rows } = await api.store.query<{ at: number | null }>(
        'select poster_at_seconds as at from videos where id = $1',
        [videoId],
      );
      expect(rows).toEqual([{ at: posterAtSeconds }]);
    }
  });

  it.each(['ready', 'held'] as const)(
    'has the poster of a video that is %s made anew, once; the ingest report tells of it [VID-212, VID-213]',
    async (status) => {
      const videoId = await seedVideo(api.store, me);
      if (status === 'held') await hold(videoId);
      const before = (await get(videoId)).body;
      for (let n = 0; n < 2; n++) {
        const { body } = await patch(videoId, { posterAtSeconds: 2.5 });
        expect(body).toEqual({ ...before, status, updatedAt: body.updatedAt });
      }
      expect(await posterTasks(videoId)).toEqual(['queued']);
      const report = await api.ask<IngestReport>(`GET ${videos()}/${videoId}/ingest-report`, {
        bearer: me.full,
      });
      expect(report.body.details['poster']).toEqual({ state: 'running', atSeconds: 2.5 });
    },
  );

  it.each(['uploading', 'processing', 'failed'] as const)(
    'keeps the moment of a video that is %s, without a job',
    async (status) => {
      const videoId = await seedVideo(api.store, me, { status });
      expect((await patch(videoId, { posterAtSeconds: 2.5 })).status).toBe(200);
      expect(await posterTasks(videoId)).toEqual([]);
    },
  );

  it('tells the CDN of a new title, with the version that the record has', async () => {
    const videoId = await seedVideo(api.store, me);
    await patch(videoId, { title: 'New' });
    const { rows } = await api.store.query<{ state: unknown; version: number }>(
      `select o.value -> 'state' as state, v.version from outbox o join videos v on v.id = o.key
       where v.id = $1 order by o.id desc limit 1`,
      [videoId],
    );
    const [told] = rows;
    expect(told?.state).toMatchObject({ videoId, status: 'ready', title: 'New', version: told?.version });
  });

  it('leaves everything alone when nothing is given', async () => {
    const videoId = await seedVideo(api.store, me);
    const { body } = await get(videoId);
    expect((await patch(videoId, {})).body).toEqual(body);
  });

  it.each<[object, string]>([
    [{ title: '' }, 'title'],
    [{ title: 'x'.repeat(201) }, 'title'],
    [{ title: 'a\u0007b' }, 'title'],
    [{ title: 'a\u0000b' }, 'title'],
    [{ title: null }, 'title'],
    [{ posterAtSeconds: -1 }, 'posterAtSeconds'],
    [{ posterAtSeconds: '1' }, 'posterAtSeconds'],
    [{ posterAtSeconds: 10.5 }, 'posterAtSeconds'],
    [{ status: 'ready' }, 'status'],
  ])('refuses %j with 400 and names the field [VID-002, VID-211]', async (body, path) => {
    const videoId = await seedVideo(api.store, me);
    const { status, problem } = await patch(videoId, body);
    expect([status, problem.code]).toEqual([400, 'invalid_request']);
    expect(problem.errors?.map((error) => error.path)).toEqual([path]);
  });
});

describe('deleting a video', () => {
  it.each(['uploading', 'processing', 'ready', 'failed'] as const)(
    'works in %s: 204, then 404; its objects go, nobody is told but the CDN [VID-209, VID-111, VID-116]',
    async (status) => {
      const videoId = await seedVideo(api.store, me, { status });
      const events = await countOf('events', videoId);
      await api.store.query('delete from outbox');
      const gone = await api.ask(`DELETE ${videos()}/${videoId}`, { bearer: me.full });
      expect([gone.status, gone.body]).toEqual([204, undefined]);
      expect(outcome(await get(videoId))).toBe('404 not_found');
      expect(outcome(await api.ask(`DELETE ${videos()}/${videoId}`, { bearer: me.full }))).toBe(
        '404 not_found',
      );
      expect(await countOf('events', videoId)).toBe(events);
      const { rows } = await api.store.query<{ status: string }>(
        `select value -> 'state' ->> 'status' as status from outbox where key = $1`,
        [videoId],
      );
      expect(rows).toEqual([{ status: 'deleted' }]);
      const { rows: left } = await api.store.query(
        `select from object_prefixes where video_id = $1 and delete_after is null`,
        [videoId],
      );
      expect(left).toEqual([]);
      const { rows: tasks } = await api.store.query(
        `select from encode_tasks where video_id = $1 and status in ('queued', 'processing')`,
        [videoId],
      );
      expect(tasks).toEqual([]);
    },
  );

  it('frees the stored seconds, not the upload seconds [LIM-107]', async () => {
    const videoId = await seedVideo(api.store, me);
    await api.store.query(
      `insert into usage_reservations (video_id, kind, account_id, amount_ms, period_start, created_at)
       select $1, kind, account_id, 10000, period_start, now() from usage, unnest(array['stored', 'upload']) kind
       where account_id = $2`,
      [videoId, me.accountId],
    );
    await api.store.query('update usage set stored_ms = 25000, upload_ms = 25000 where account_id = $1', [
      me.accountId,
    ]);
    await api.ask(`DELETE ${videos()}/${videoId}`, { bearer: me.full });
    const { rows } = await api.store.query(
      'select stored_ms as stored, upload_ms as upload from usage where account_id = $1',
      [me.accountId],
    );
    expect(rows).toEqual([{ stored: 15_000, upload: 25_000 }]);
  });

  it('makes its project empty', async () => {
    const videoId = await seedVideo(api.store, me);
    const project = `DELETE /v1/projects/${me.projectId}`;
    expect(outcome(await api.ask(project, { cookie: me.cookie }))).toBe('409 project_not_empty');
    await api.ask(`DELETE ${videos()}/${videoId}`, { bearer: me.full });
    expect(outcome(await api.ask(project, { cookie: me.cookie }))).toBe('204');
  });
});

const hold = (videoId: string): Promise<unknown> =>
  createHoldCommands(api.store).place(
    { videoId, source: 'admin', reference: 'admin', reason: null, legal: false },
    'admin',
  );

async function posterTasks(videoId: string): Promise<string[]> {
  const { rows } = await api.store.query<{ status: string }>(
    `select status from encode_tasks where video_id = $1 and kind = 'poster'`,
    [videoId],
  );
  return rows.map(({ status }) => status);
}

const countOf = async (table: 'events', videoId: string): Promise<number> =>
  (await api.store.query(`select from ${table} where video_id = $1`, [videoId])).rowCount;

describe('the ingest report', () => {
  it('is the latest encode’s; 404 before there is one', async () => {
    const videoId = await seedVideo(api.store, me, { status: 'uploading' });
    const at = `GET ${videos()}/${videoId}/ingest-report`;
    expect(outcome(await api.ask(at, { bearer: me.full }))).toBe('404 not_found');
    const done = await seedVideo(api.store, me, { status: 'processing' });
    await api.store.query(
      `update encode_jobs set report = '{"source": {"container": "mp4"}}' where video_id = $1`,
      [done],
    );
    await finishEncode(api.store, done);
    const { status, body } = await api.ask<IngestReport>(`GET ${videos()}/${done}/ingest-report`, {
      bearer: me.full,
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ videoId: done, details: { source: { container: 'mp4' } } });
  });
});
