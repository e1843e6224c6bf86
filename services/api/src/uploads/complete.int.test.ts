import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Account, type Video } from '@millrace/contract';
import { finishEncode } from '../testing/seed-video.ts';
import { type Answer, createTenant, type Tenant } from '../testing/test-api.ts';
import {
  complete,
  createUploadBench,
  eventsOf,
  MiB,
  nothing,
  put,
  resume,
  rowsOf,
  sent,
  start,
  type UploadBench,
  uploadsOf,
} from '../testing/upload-bench.ts';

let bench: UploadBench;
let me: Tenant;

beforeAll(async () => {
  bench = await createUploadBench();
});
afterAll(() => bench.close());
beforeEach(async () => {
  me = await createTenant(bench.api);
});

const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const completed = { ...nothing, videos: 1, uploads: 1, prefixes: 1, jobs: 1 };

async function outboxOf(videoId: string): Promise<string[]> {
  const { rows } = await bench.api.store.query<{ topic: string; kind: string }>(
    `select o.topic, coalesce(o.value ->> 'kind', '') as kind from outbox o
     where o.key = $1 or o.key in (select id from encode_tasks where video_id = $1) order by o.id`,
    [videoId],
  );
  return rows.map(({ topic, kind }) => `${topic} ${kind}`.trim());
}

describe('completing an upload', () => {
  it('joins the parts, moves the video to processing and starts one encode [VID-102, UPL-230]', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 5 * MiB, 7]);
    const answer = await complete(bench, me, upload.id, parts);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      id: upload.video.id,
      status: 'processing',
      sizeBytes: 10 * MiB + 7,
      failure: null,
    });
    expect(Date.parse(answer.body.updatedAt)).toBeGreaterThan(Date.parse(upload.video.updatedAt));
    expect(await rowsOf(bench, me)).toEqual(completed);
    expect(await outboxOf(upload.video.id)).toEqual([
      'millrace.encode.tasks plan',
      'millrace.playback.state video',
    ]);
    const { rows } = await bench.api.store.query<{ key: string; job: string }>(
      `select v.source_key as key, j.id as job from videos v join encode_jobs j on j.id = v.current_job_id
       where v.id = $1`,
      [upload.video.id],
    );
    const stored = await bench.objects.head(rows[0]?.key ?? '');
    expect(stored?.sizeBytes).toBe(10 * MiB + 7);
  });

  it('works on the free plan without a verified phone, and nothing holds the video [SVC-008, SVC-009]', async () => {
    me = await createTenant(bench.api, 'free');
    const { body: who } = await bench.api.ask<{ account: Account }>('GET /v1/me', { cookie: me.cookie });
    expect(who.account).toMatchObject({ planId: 'free', phoneVerified: false });
    const { upload, parts } = await sent(bench, me);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
    await finishEncode(bench.api.store, upload.video.id);
    const { body } = await bench.api.ask<Video>(
      `GET /v1/projects/${me.projectId}/videos/${upload.video.id}`,
      { bearer: me.full },
    );
    expect(body.status).toBe('ready');
    expect(await eventsOf(bench, upload.video.id)).toEqual(['video.ready']);
    const holds = await bench.api.store.query('select from video_holds where video_id = $1', [body.id]);
    expect(holds.rowCount).toBe(0);
  });

  it('counts each of an import of many as one upload, with the rules of one [SVC-011]', async () => {
    me = await createTenant(bench.api, 'free');
    const many = Array.from({ length: 30 }, (_, n) => n);
    const uploads = await Promise.all(many.map(() => sent(bench, me)));
    const answers = await Promise.all(
      uploads.map(({ upload, parts }) => complete(bench, me, upload.id, parts)),
    );
    expect(answers.map(outcome)).toEqual(many.map(() => '200'));
    const each = many.length;
    expect(await rowsOf(bench, me)).toEqual({
      ...nothing,
      ...{ videos: each, uploads: each, prefixes: each, jobs: each },
    });
    const { rows } = await bench.api.store.query(
      'select class, priority from encode_tasks where account_id = $1 group by class, priority',
      [me.accountId],
    );
    expect(rows).toEqual([{ class: 'standard', priority: 0 }]);
  });

  it('takes parts in any order, ETags without quotes, and a single small part [UPL-231]', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 5 * MiB, 1]);
    const shuffled = [2, 0, 1].map((index) => {
      const { partNumber, etag } = parts[index] ?? { partNumber: 0, etag: '' };
      return { partNumber, etag: etag.replaceAll('"', '') };
    });
    expect(outcome(await complete(bench, me, upload.id, shuffled))).toBe('200');
    const small = await sent(bench, me, [1_024]);
    expect(outcome(await complete(bench, me, small.upload.id, small.parts))).toBe('200');
  });

  it('takes the real size for true, smaller or larger than declared [UPL-234, VID-010]', async () => {
    const smaller = await start(bench, me, { sizeBytes: 10 * MiB });
    const small = await put(smaller.body, 1, Buffer.alloc(5 * MiB));
    expect((await complete(bench, me, smaller.body.id, [small])).body.sizeBytes).toBe(5 * MiB);
    const larger = await start(bench, me, { sizeBytes: 5 * MiB });
    const large = await put(larger.body, 1, Buffer.alloc(10 * MiB));
    expect((await complete(bench, me, larger.body.id, [large])).body.sizeBytes).toBe(10 * MiB);
  });

  it('takes an empty file, whose encode will say what is wrong', async () => {
    const { upload, parts } = await sent(bench, me, [0]);
    expect((await complete(bench, me, upload.id, parts)).body).toMatchObject({
      status: 'processing',
      sizeBytes: 0,
    });
  });

  it('charges nothing yet: the length is not known', async () => {
    const { upload, parts } = await sent(bench, me);
    await complete(bench, me, upload.id, parts);
    const { rowCount } = await bench.api.store.query('select from usage_reservations where video_id = $1', [
      upload.video.id,
    ]);
    expect(rowCount).toBe(0);
  });
});

describe('a list of parts that is not what was uploaded', () => {
  const etag = '"00000000000000000000000000000000"';

  it.each<[string, (parts: { partNumber: number; etag: string }[]) => unknown, string]>([
    ['an empty list', () => [], 'parts'],
    ['a part missing at the end', ([first, second]) => [first, second], 'parts'],
    ['a part missing in between', ([first, , third]) => [first, third], 'parts'],
    ['a part twice', ([first, second, third]) => [first, second, second, third], 'parts[2].partNumber'],
    ['a part that was never sent', (parts) => [...parts, { partNumber: 4, etag }], 'parts[3].partNumber'],
    ['a wrong ETag', ([first, , third]) => [first, { partNumber: 2, etag }, third], 'parts[1].etag'],
    [
      'two ETags exchanged',
      ([first, second, third]) => [
        { partNumber: 1, etag: second?.etag },
        { partNumber: 2, etag: first?.etag },
        third,
      ],
      'parts[0].etag',
    ],
  ])(
    'with %s is 400 invalid_parts; the upload stays open [UPL-232, UPL-233]',
    async (_what, change, path) => {
      const { upload, parts } = await sent(bench, me, [5 * MiB, 5 * MiB, 7]);
      const { status, problem } = await complete(bench, me, upload.id, change(parts));
      expect([status, problem.code]).toEqual([400, 'invalid_parts']);
      expect(problem.errors?.map((error) => error.path)).toContain(path);
      expect(await rowsOf(bench, me)).toEqual({ ...completed, jobs: 0 });
      expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
    },
  );

  it('with a first part under 5 MiB is 400; the part can be sent again [UPL-232]', async () => {
    const { upload, parts } = await sent(bench, me, [MiB, MiB]);
    const { status, problem } = await complete(bench, me, upload.id, parts);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([
      400,
      'invalid_parts',
      'parts[0].partNumber',
    ]);
    parts[0] = await put(upload, 1, Buffer.alloc(5 * MiB));
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
  });

  it.each<[string, unknown, string]>([
    ['no list', undefined, 'parts'],
    ['a list that is an object', {}, 'parts'],
    ['a part number as text', [{ partNumber: '1', etag }], 'parts[0].partNumber'],
    ['part number zero', [{ partNumber: 0, etag }], 'parts[0].partNumber'],
    ['no ETag', [{ partNumber: 1 }], 'parts[0].etag'],
    ['an empty ETag', [{ partNumber: 1, etag: '' }], 'parts[0].etag'],
    ['an unknown field', [{ partNumber: 1, etag, size: 5 }], 'parts[0].size'],
  ])('with %s is 400 invalid_request', async (_what, parts, path) => {
    const { upload } = await sent(bench, me);
    const { status, problem } = await complete(bench, me, upload.id, parts);
    expect([status, problem.code, problem.errors?.[0]?.path]).toEqual([400, 'invalid_request', path]);
    expect((await resume(bench, me, upload.id)).status).toBe(200);
  });
});

describe('completing more than once', () => {
  it('in a row: 200, then 409 [UPL-237]', async () => {
    const { upload, parts } = await sent(bench, me);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
    expect(await rowsOf(bench, me)).toEqual(completed);
  });

  it('ten times at once: one 200, nine 409, one job', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 9]);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => complete(bench, me, upload.id, parts)),
    );
    const outcomes = answers.map(outcome).sort();
    expect(outcomes).toEqual(['200', ...Array.from({ length: 9 }, () => '409 upload_closed')]);
    expect(await rowsOf(bench, me)).toEqual(completed);
    const accepted = answers.find((answer) => answer.status === 200) as Answer<Video>;
    expect(accepted.body.status).toBe('processing');
  });

  it('with a twin whose parts are refused: the other still succeeds', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 9]);
    const [wrong, right] = await Promise.all([
      complete(bench, me, upload.id, parts.slice(0, 1)),
      complete(bench, me, upload.id, parts),
    ]);
    expect(outcome(right)).toBe('200');
    expect(['400 invalid_parts', '409 upload_closed']).toContain(outcome(wrong));
  });

  it('goes on after a call whose parts changed while they were joined', async () => {
    const { upload, parts } = await sent(bench, me);
    let changed: { partNumber: number; etag: string } | null = null;
    bench.hooks.beforeComplete = async () => {
      bench.hooks.beforeComplete = () => undefined;
      changed = await put(upload, 1, Buffer.from('changed'));
    };
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('400 invalid_parts');
    expect(outcome(await complete(bench, me, upload.id, [changed]))).toBe('200');
  });
});

describe('a real size over a limit', () => {
  it('is 403; the video is failed, the event told, the file left to the sweep [VID-103, UPL-235, LIM-102]', async () => {
    const { upload, parts } = await sent(bench, me, [2_000]);
    await bench.api.operator.setPlan({ accountId: me.accountId, planId: 'starter' });
    await bench.api.store.query(`update plans set max_file_bytes = 1999 where id = 'starter'`);
    const refused = await complete(bench, me, upload.id, parts);
    expect(outcome(refused)).toBe('403 plan_limit_reached');
    const { body } = await bench.api.ask<Video>(
      `GET /v1/projects/${me.projectId}/videos/${upload.video.id}`,
      {
        bearer: me.full,
      },
    );
    expect(body).toMatchObject({
      status: 'failed',
      sizeBytes: 2_000,
      failure: { code: 'plan_limit_reached' },
    });
    expect(await eventsOf(bench, upload.video.id)).toEqual(['video.failed']);
    const { rows } = await bench.api.store.query<{ doomed: boolean }>(
      'select delete_after is not null as doomed from object_prefixes where video_id = $1',
      [upload.video.id],
    );
    expect(rows).toEqual([{ doomed: true }]);
    expect(await rowsOf(bench, me)).toEqual({ ...completed, jobs: 0, events: 1 });
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
  });

  it('is taken at exactly the limit, and over the cap of an upload token it is not', async () => {
    for (const [cap, expected] of [
      [2_000, '200'],
      [1_999, '403 plan_limit_reached'],
    ] as const) {
      const { upload, parts } = await sent(bench, me, [2_000]);
      await bench.api.store.query('update uploads set max_bytes = $2 where id = $1', [upload.id, cap]);
      expect(outcome(await complete(bench, me, upload.id, parts))).toBe(expected);
    }
  });
});

describe('an upload of somebody else', () => {
  it('is 404 on every route, also in another project of the account [AUT-008]', async () => {
    const { upload, parts } = await sent(bench, me);
    const other = await createTenant(bench.api);
    const second = await bench.api.operator.createProject({ accountId: me.accountId, name: 'Second' });
    for (const [projectId, cookie] of [
      [other.projectId, other.cookie],
      [second.id, me.cookie],
    ] as const) {
      const at = `${uploadsOf({ ...me, projectId })}/${upload.id}`;
      for (const [request, body] of [
        [`GET ${at}`, undefined],
        [`DELETE ${at}`, undefined],
        [`POST ${at}/complete`, { parts }],
      ] as const) {
        expect(outcome(await bench.api.ask(request, { cookie, body }))).toBe('404 not_found');
      }
    }
    expect(outcome(await complete(bench, me, 'upl_unknown', parts))).toBe('404 not_found');
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
  });
});
