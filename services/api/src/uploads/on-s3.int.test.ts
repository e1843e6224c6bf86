import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeWith } from '../../../../dev/real-part.ts';
import { missingForS3 } from '../../../../dev/s3/versitygw.ts';
import { openS3Store } from '../testing/s3-store.ts';
import { type Answer, createTenant, type Tenant } from '../testing/test-api.ts';
import {
  complete,
  createUploadBench,
  MiB,
  nothing,
  put,
  resume,
  rowsOf,
  sent,
  start,
  type UploadBench,
} from '../testing/upload-bench.ts';

let bench: UploadBench;
let me: Tenant;

const outcome = ({ status, problem }: Answer): string =>
  status < 400 ? String(status) : `${status} ${problem.code}`;
const completed = { ...nothing, videos: 1, uploads: 1, prefixes: 1, jobs: 1 };
const corsOf = (response: Response): (string | null)[] =>
  ['access-control-allow-origin', 'access-control-expose-headers'].map((name) => response.headers.get(name));

describeWith(missingForS3(), 'uploads to an S3 API', () => {
  beforeAll(async () => {
    bench = await createUploadBench(() => openS3Store({ pageSize: 100 }));
  }, 900_000);
  afterAll(() => bench.close());
  beforeEach(async () => {
    me = await createTenant(bench.api);
  });

  it('go on by fresh addresses when the first have expired, and keep what was sent', async () => {
    const { body: upload } = await start(bench, me, { sizeBytes: 48 * MiB });
    const first = await put(upload, 1, Buffer.alloc(5 * MiB));
    const { key, uploadId } = await inStore(upload.id);
    const late = await bench.objects.presignPart({ key, uploadId, partNumber: 2, expiresAt: new Date() });
    expect((await fetch(late, { method: 'PUT', body: 'too late' })).status).toBe(403);

    const { body: resumed } = await resume(bench, me, upload.id);
    expect(resumed.uploadedParts).toEqual([{ ...first, sizeBytes: 5 * MiB }]);
    const second = await put(resumed, 2, Buffer.alloc(5 * MiB));
    const third = await put(resumed, 3, Buffer.alloc(7));
    expect(outcome(await complete(bench, me, upload.id, [third, first, second]))).toBe('200');
    expect((await bench.objects.head(key))?.sizeBytes).toBe(10 * MiB + 7);
  });

  it('take parts from a page of any origin, whose script reads the ETag [UPL-212]', async () => {
    const { body: upload } = await start(bench, me);
    const url = upload.parts[0]?.url ?? '';
    const origin = 'https://customer.example';
    const preflight = await fetch(url, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'PUT' },
    });
    expect(preflight.ok).toBe(true);
    expect(preflight.headers.get('access-control-allow-methods')).toMatch(/\bPUT\b/);
    const answer = await fetch(url, { method: 'PUT', headers: { origin }, body: 'bytes' });
    expect(answer.status).toBe(200);
    expect(corsOf(answer)).toEqual([
      expect.stringMatching(/^\*$|^https:\/\/customer\.example$/),
      expect.stringMatching(/etag/i),
    ]);
  });

  it('are refused with parts that are too small, and stay open [UPL-232]', async () => {
    const { upload, parts } = await sent(bench, me, [MiB, MiB]);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('400 invalid_parts');
    const again = await put(upload, 1, Buffer.alloc(5 * MiB));
    expect(outcome(await complete(bench, me, upload.id, [again, ...parts.slice(1)]))).toBe('200');
    const small = await sent(bench, me, [1_024]);
    expect(outcome(await complete(bench, me, small.upload.id, small.parts))).toBe('200');
  });

  it('know all of 1,005 parts when the client has forgotten them', async () => {
    const count = 1_005;
    const { body: upload } = await start(bench, me, { sizeBytes: count * 16 * MiB });
    for (let from = 1; from <= count; from += 15) {
      const numbers = Array.from({ length: Math.min(15, count - from + 1) }, (_, index) => from + index);
      await Promise.all(numbers.map((number) => put(upload, number, Buffer.from(String(number)))));
    }
    const { body } = await resume(bench, me, upload.id);
    expect(body.uploadedParts.map((part) => part.partNumber)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    );
  });

  it('are completed once by ten calls at once, and not again after [UPL-236, UPL-237]', async () => {
    const { upload, parts } = await sent(bench, me);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => complete(bench, me, upload.id, parts)),
    );
    expect(answers.map(outcome).sort()).toEqual(['200', ...Array<string>(9).fill('409 upload_closed')]);
    expect(outcome(await complete(bench, me, upload.id, parts))).toBe('409 upload_closed');
    expect(await rowsOf(bench, me)).toEqual(completed);
  });

  it('name the fault of a wrong list and stay open [UPL-232, UPL-233]', async () => {
    const { upload, parts } = await sent(bench, me, [5 * MiB, 7]);
    const [first, second] = parts;
    const wrong = '"00000000000000000000000000000000"';
    for (const list of [[], [first, second, second], [first], [first, { partNumber: 2, etag: wrong }]]) {
      expect(outcome(await complete(bench, me, upload.id, list))).toBe('400 invalid_parts');
    }
    const text = [first, { ...second, partNumber: '2' }];
    expect(outcome(await complete(bench, me, upload.id, text))).toBe('400 invalid_request');
    expect(outcome(await complete(bench, me, upload.id, [second, first]))).toBe('200');
  });

  it('have the size that was sent, whatever was declared [UPL-234]', async () => {
    for (const [declared, real] of [
      [10 * MiB, 5 * MiB],
      [5 * MiB, 10 * MiB],
    ] as const) {
      const { body: upload } = await start(bench, me, { sizeBytes: declared });
      const part = await put(upload, 1, Buffer.alloc(real));
      expect((await complete(bench, me, upload.id, [part])).body.sizeBytes).toBe(real);
    }
  });
});

async function inStore(uploadId: string): Promise<{ key: string; uploadId: string }> {
  const { rows } = await bench.api.store.query<{ key: string; uploadId: string }>(
    'select object_key as key, store_upload_id as "uploadId" from uploads where id = $1',
    [uploadId],
  );
  const [row] = rows;
  if (!row) throw new Error(`no upload ${uploadId}`);
  return row;
}
