import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { doomedPrefixes, expireUploads, findUpload, unknownUploads } from '@millrace/store';
import { adminToken, type Answer, createTenant, type Tenant } from '../testing/test-api.ts';
import {
  cancel,
  complete,
  createUploadBench,
  eventsOf,
  MiB,
  put,
  resume,
  rowsOf,
  sent,
  start,
  type UploadBench,
} from '../testing/upload-bench.ts';

const day = 86_400_000;
const rounds = 10;

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
const videoOf = (videoId: string): Promise<Answer> =>
  bench.api.ask(`GET /v1/projects/${me.projectId}/videos/${videoId}`, { bearer: me.full });
const age = (uploadId: string, by: string): Promise<unknown> =>
  bench.api.store.query(
    `update uploads set created_at = created_at - $2::interval, expires_at = expires_at - $2::interval
     where id = $1`,
    [uploadId, by],
  );
const stateOf = async (uploadId: string): Promise<string | undefined> =>
  (await findUpload(bench.api.store, me.projectId, uploadId))?.state;
const storeUploadOf = async (uploadId: string): Promise<string | undefined> =>
  (await findUpload(bench.api.store, me.projectId, uploadId))?.storeUploadId;
/** Prefixes of this account's videos that the sweep will purge. */
async function doomed(): Promise<number> {
  const all = await doomedPrefixes(bench.api.store, 1_000);
  const { rows } = await bench.api.store.query<{ id: string }>(
    'select id from videos where account_id = $1',
    [me.accountId],
  );
  return all.filter((prefix) => rows.some((row) => row.id === prefix.videoId)).length;
}

describe('resuming an upload', () => {
  it('lists the parts held, signs fresh URLs and extends the end by 24 hours [UPL-220, UPL-221]', async () => {
    const { body: upload } = await start(bench, me, { sizeBytes: 48 * MiB });
    const first = await put(upload, 1, Buffer.alloc(5 * MiB));
    const third = await put(upload, 3, Buffer.alloc(7));
    const { status, body } = await resume(bench, me, upload.id);
    expect(status).toBe(200);
    expect(body.uploadedParts).toEqual([
      { ...first, sizeBytes: 5 * MiB },
      { ...third, sizeBytes: 7 },
    ]);
    expect(body).toMatchObject({ id: upload.id, video: upload.video, partSizeBytes: upload.partSizeBytes });
    expect(Date.parse(body.expiresAt) - Date.parse(upload.expiresAt)).toBe(day);
    const second = await put(body, 2, Buffer.alloc(5 * MiB));
    expect(outcome(await complete(bench, me, upload.id, [first, second, third]))).toBe('200');
  });

  it('goes on by fresh URLs when the first have expired, and keeps what was sent [UPL-003, UPL-220]', async () => {
    const { body: upload } = await start(bench, me, { sizeBytes: 48 * MiB });
    const first = await put(upload, 1, Buffer.alloc(5 * MiB));
    const { rows } = await bench.api.store.query<{ key: string; uploadId: string }>(
      'select object_key as key, store_upload_id as "uploadId" from uploads where id = $1',
      [upload.id],
    );
    const { key = '', uploadId = '' } = rows[0] ?? {};
    const late = await bench.objects.presignPart({ key, uploadId, partNumber: 2, expiresAt: new Date() });
    const headers = { origin: 'https://customer.example' };
    const refused = await fetch(late, { method: 'PUT', headers, body: 'too late' });
    // A page that may not read why cannot know that it should ask again.
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([403, '*']);

    const { body: resumed } = await resume(bench, me, upload.id);
    expect(resumed.uploadedParts).toEqual([{ ...first, sizeBytes: 5 * MiB }]);
    const second = await put(resumed, 2, Buffer.alloc(5 * MiB));
    const third = await put(resumed, 3, Buffer.alloc(7));
    expect(outcome(await complete(bench, me, upload.id, [third, first, second]))).toBe('200');
    expect((await bench.objects.head(key))?.sizeBytes).toBe(10 * MiB + 7);
  });

  it('never goes beyond 7 days after the start [UPL-221]', async () => {
    const { body: upload } = await start(bench, me);
    let end = 0;
    for (let again = 0; again < 8; again++) {
      end = Date.parse((await resume(bench, me, upload.id)).body.expiresAt);
    }
    expect(end - Date.parse(upload.video.createdAt)).toBeLessThanOrEqual(7 * day);
    expect(end - Date.parse(upload.video.createdAt)).toBeGreaterThan(7 * day - 60_000);
  });

  it('turns the pages of a thousand and more parts, and joins them', async () => {
    const count = 1_005;
    const { body: upload } = await start(bench, me, { sizeBytes: count * 16 * MiB });
    const etagOf = (partNumber: number): string => `"${partNumber.toString(16).padStart(32, '0')}"`;
    // No machine sends these bytes for a test: the store says that it has them.
    const pageSize = 1_000;
    const { listParts, complete: join } = bench.objects;
    const joined: number[] = [];
    bench.objects.listParts = ({ after = '0' }) => {
      const from = Number(after);
      const items = Array.from({ length: Math.min(pageSize, count - from) }, (_, index) => ({
        partNumber: from + index + 1,
        etag: etagOf(from + index + 1),
        sizeBytes: 16 * MiB,
      }));
      return Promise.resolve({
        items,
        next: from + items.length < count ? String(from + items.length) : null,
      });
    };
    bench.objects.complete = ({ parts }) => {
      joined.push(...parts.map((part) => part.partNumber));
      return Promise.resolve({ etag: '"any-1005"', sizeBytes: count * 16 * MiB });
    };
    try {
      const { body } = await resume(bench, me, upload.id);
      expect(body.uploadedParts).toHaveLength(count);
      const named = body.uploadedParts.map(({ partNumber, etag }) => ({ partNumber, etag })).reverse();
      expect(outcome(await complete(bench, me, upload.id, named))).toBe('200');
      expect(joined).toEqual(Array.from({ length: count }, (_, index) => index + 1));
    } finally {
      Object.assign(bench.objects, { listParts, complete: join });
    }
  });

  it('is 409 once the upload is closed, and 404 thirty days later [UPL-222, UPL-237]', async () => {
    const { upload, parts } = await sent(bench, me);
    await complete(bench, me, upload.id, parts);
    expect(outcome(await resume(bench, me, upload.id))).toBe('409 upload_closed');
    await bench.api.store.query(
      `update uploads set closed_at = closed_at - interval '30 days 1 second' where id = $1`,
      [upload.id],
    );
    expect(outcome(await resume(bench, me, upload.id))).toBe('404 not_found');
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('404 not_found');
  });
});

describe('cancelling an upload', () => {
  it('removes parts and video at once, tells nobody, and closes it [VID-109, UPL-240, UPL-241]', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 1]);
    const storeUpload = await storeUploadOf(upload.id);
    const answer = await cancel(bench, me, upload.id);
    expect([answer.status, answer.body]).toEqual([204, undefined]);
    expect(await bench.storeUploads()).not.toContain(storeUpload);
    expect(outcome(await videoOf(upload.video.id))).toBe('404 not_found');
    expect(await eventsOf(bench, upload.video.id)).toEqual([]);
    expect(await doomed()).toBe(1);
    await expect(put(upload, 1, Buffer.from('late'))).rejects.toThrow('404');
    expect(outcome(await cancel(bench, me, upload.id))).toBe('409 upload_closed');
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
  });

  it('leaves a completed upload alone [UPL-241]', async () => {
    const { upload, parts } = await sent(bench, me);
    await complete(bench, me, upload.id, parts);
    expect(outcome(await cancel(bench, me, upload.id))).toBe('409 upload_closed');
    expect((await videoOf(upload.video.id)).body).toMatchObject({ status: 'processing' });
  });

  it('keeps the parts of a video under a legal hold', async () => {
    const { upload } = await sent(bench, me);
    await bench.api.ask(`POST internal:/admin/videos/${upload.video.id}/hold`, {
      bearer: adminToken,
      body: { legal: true },
    });
    const storeUpload = await storeUploadOf(upload.id);
    expect((await cancel(bench, me, upload.id)).status).toBe(204);
    expect(await bench.storeUploads()).toContain(storeUpload);
    expect(await doomed()).toBe(0);
    const known = [{ key: 'any', uploadId: storeUpload ?? '' }];
    expect(await unknownUploads(bench.api.store, known)).toEqual([]);
    await bench.api.ask(`DELETE internal:/admin/videos/${upload.video.id}/hold`, { bearer: adminToken });
    expect(await doomed()).toBe(1);
    expect(await unknownUploads(bench.api.store, known)).toEqual(known);
  });
});

describe('an upload whose time is over', () => {
  it('is closed at once, and removed with its video by the sweep, which may run twice [VID-110]', async () => {
    const { upload, parts } = await sent(bench, me);
    await age(upload.id, '24 hours 6 minutes');
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
    expect(outcome(await resume(bench, me, upload.id))).toBe('409 upload_closed');
    expect(outcome(await cancel(bench, me, upload.id))).toBe('409 upload_closed');
    expect(await stateOf(upload.id)).toBe('open');
    const runs = await Promise.all([expireUploads(bench.api.store), expireUploads(bench.api.store)]);
    expect(runs.reduce((sum, count) => sum + count)).toBe(1);
    expect(await expireUploads(bench.api.store)).toBe(0);
    expect(await stateOf(upload.id)).toBe('expired');
    expect(outcome(await videoOf(upload.video.id))).toBe('404 not_found');
    expect(await eventsOf(bench, upload.video.id)).toEqual([]);
    expect(await doomed()).toBe(1);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
  });

  it('is not touched a moment earlier', async () => {
    const { upload, parts } = await sent(bench, me);
    await age(upload.id, '24 hours 4 minutes');
    expect(await expireUploads(bench.api.store)).toBe(0);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('200');
  });
});

describe('races', () => {
  it('of complete and cancel have one winner [UPL-236]', async () => {
    for (let round = 0; round < rounds; round++) {
      const { upload, parts } = await sent(bench, me);
      const [completing, cancelling] = await Promise.all([
        complete(bench, me, upload.id, parts),
        cancel(bench, me, upload.id),
      ]);
      const outcomes = [outcome(completing), outcome(cancelling)];
      const video = await videoOf(upload.video.id);
      if (completing.status === 200) {
        expect(outcomes).toEqual(['200', '409 upload_closed']);
        expect(video.body).toMatchObject({ status: 'processing' });
      } else {
        expect(outcomes).toEqual(['409 upload_closed', '204']);
        expect(video.status).toBe(404);
      }
    }
  });

  it('of complete and expiry have one winner [UPL-236]', async () => {
    for (let round = 0; round < rounds; round++) {
      const { upload, parts } = await sent(bench, me);
      const [completing] = await Promise.all([
        complete(bench, me, upload.id, parts),
        age(upload.id, '25 hours').then(() => expireUploads(bench.api.store)),
      ]);
      await expireUploads(bench.api.store);
      const won = completing.status === 200;
      expect(outcome(completing)).toBe(won ? '200' : '409 upload_closed');
      expect(await stateOf(upload.id)).toBe(won ? 'completed' : 'expired');
      expect((await videoOf(upload.video.id)).status).toBe(won ? 200 : 404);
    }
  });

  it('of complete and the video’s deletion leave no encode behind', async () => {
    for (let round = 0; round < rounds; round++) {
      const { upload, parts } = await sent(bench, me);
      const path = `/v1/projects/${me.projectId}/videos/${upload.video.id}`;
      const [completing, deleting] = await Promise.all([
        complete(bench, me, upload.id, parts),
        bench.api.ask(`DELETE ${path}`, { bearer: me.full }),
      ]);
      expect(deleting.status).toBe(204);
      expect(['200', '409 upload_closed']).toContain(outcome(completing));
      expect((await videoOf(upload.video.id)).status).toBe(404);
      const { rowCount } = await bench.api.store.query(
        `select from encode_tasks where video_id = $1 and status in ('queued', 'processing')`,
        [upload.video.id],
      );
      expect(rowCount).toBe(0);
    }
    expect(await rowsOf(bench, me)).toMatchObject({ videos: rounds, events: 0 });
  });
});
