import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type ObjectStore } from '../object-store.ts';
import { createS3ObjectStore, type S3ObjectStoreOptions } from './s3-object-store.ts';
import { bare, bytes, refusal, type ScriptedS3, startScriptedS3, xml } from './testing/scripted-s3.ts';

let s3: ScriptedS3;
let store: ObjectStore;
const open = (options: Partial<S3ObjectStoreOptions> = {}): ObjectStore => {
  const opened = createS3ObjectStore({ ...s3.options, ...options });
  closing.push(opened);
  return opened;
};
const closing: ObjectStore[] = [];

beforeEach(async () => {
  s3 = await startScriptedS3();
  store = open();
});
afterEach(async () => {
  for (const each of closing.splice(0)) await each.close();
  await s3.close();
});

const lines = (): string[] => s3.calls.map((call) => call.line);
const upload = { key: 'videos/source', uploadId: 'u1' };
const parts = [{ partNumber: 1, etag: '"a"' }];
const joined =
  '<CompleteMultipartUploadResult><ETag>&quot;joined-1&quot;</ETag></CompleteMultipartUploadResult>';
const failedJoin =
  '<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>';
const object = bare(200, { etag: '"joined-1"', 'content-length': '5' });
const unavailable = { name: 'ObjectStoreError', code: 'unavailable' };

describe('joining parts', () => {
  it('waits through the white space that keeps the connection alive', async () => {
    s3.answers = [xml(joined, { before: '  \n   ' }), object];
    expect(await store.complete({ ...upload, parts })).toEqual({ etag: '"joined-1"', sizeBytes: 5 });
    expect(lines()).toEqual(['POST /bucket/videos/source?uploadId=u1', 'HEAD /bucket/videos/source']);
    expect(s3.calls[0]?.body).toContain('<Part><ETag>&quot;a&quot;</ETag><PartNumber>1</PartNumber></Part>');
  });

  it.each([
    ['', ''],
    ['   ', ''],
    ['', '\n'],
  ])('that fails with status 200 is unavailable (%j before, %j after the error)', async (before, after) => {
    s3.answers = [xml(failedJoin, { before, after })];
    await expect(store.complete({ ...upload, parts })).rejects.toMatchObject(unavailable);
    expect(lines()).toHaveLength(1);
  });

  it('is tried again after an error with status 200', async () => {
    s3.answers = [xml(failedJoin), xml(joined), object];
    expect(await open({ limits: { tries: 2 } }).complete({ ...upload, parts })).toMatchObject({
      sizeBytes: 5,
    });
  });

  it('tells a refused part from an outage, also with status 200', async () => {
    s3.answers = [xml('<Error><Code>InvalidPart</Code><Message>One is missing.</Message></Error>')];
    await expect(store.complete({ ...upload, parts })).rejects.toMatchObject({ code: 'invalid_part' });
  });

  it('whose object is another by then was over before: the upload is closed', async () => {
    const closed = { code: 'no_such_upload' };
    s3.answers = [xml(joined), bare(200, { etag: '"other"', 'content-length': '5' })];
    await expect(store.complete({ ...upload, parts })).rejects.toMatchObject(closed);
    s3.answers = [xml(joined), bare(404)];
    await expect(store.complete({ ...upload, parts })).rejects.toMatchObject(closed);
  });

  it('refuses what servers see differently by itself, once it knows that the upload is open', async () => {
    s3.answers = [xml('<ListPartsResult></ListPartsResult>')];
    const second = { partNumber: 2, etag: '"b"' };
    const none = { partNumber: 0, etag: '"b"' };
    for (const [list, code] of [
      [[], 'invalid_part'],
      [[none], 'invalid_part'],
      [[second, ...parts], 'invalid_part_order'],
    ] as const) {
      await expect(store.complete({ ...upload, parts: list })).rejects.toMatchObject({ code });
    }
    expect(lines().every((line) => line.startsWith('GET '))).toBe(true);
  });
});

describe('aborting an upload', () => {
  const oneLeft = xml('<ListPartsResult><Part><PartNumber>1</PartNumber></Part></ListPartsResult>');
  const gone = refusal(404, 'NoSuchUpload');

  it('goes on until no part is left', async () => {
    s3.answers = [bare(204), oneLeft, bare(204), oneLeft, bare(204), gone];
    await store.abort(upload);
    const [abort, list] = ['DELETE', 'GET'].map((method) => `${method} /bucket/videos/source?`);
    expect(lines().map((line) => line.replace(/\?.*/, '?'))).toEqual([abort, list, abort, list, abort, list]);
  });

  it('ends when it is gone, or empty', async () => {
    s3.answers = [gone];
    await store.abort(upload);
    s3.answers = [bare(204), xml('<ListPartsResult></ListPartsResult>')];
    await store.abort(upload);
    expect(lines()).toHaveLength(3);
  });

  it('gives up when parts keep coming', async () => {
    s3.answers = Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? bare(204) : oneLeft));
    await expect(store.abort(upload)).rejects.toMatchObject(unavailable);
    expect(lines()).toHaveLength(10);
  });
});

describe('deleting many', () => {
  it('names what is left, and asks for the rest all the same', async () => {
    const failed = (key: string, code: string): string =>
      `<Error><Key>${key}</Key><Code>${code}</Code><Message>As scripted.</Message></Error>`;
    s3.answers = [
      xml(`<DeleteResult>${failed('k/1', 'InternalError')}${failed('k/2', 'NoSuchKey')}</DeleteResult>`),
      xml(`<DeleteResult>${failed('k/1000', 'AccessDenied')}</DeleteResult>`),
    ];
    const keys = Array.from({ length: 1_001 }, (_, n) => `k/${n}`);
    await expect(store.deleteMany(keys)).rejects.toMatchObject({
      ...unavailable,
      message: '2 objects were not deleted: k/1 (InternalError)',
    });
    const asked = s3.calls.map((call) => call.body.match(/<Key>/g)?.length);
    expect(asked).toEqual([1_000, 1]);
    // Servers that know no newer checksum want this one or none.
    expect(s3.calls[0]?.headers).toHaveProperty('x-amz-checksum-crc32');
  });

  it('is content when all that failed was absent', async () => {
    s3.answers = [xml('<DeleteResult><Error><Key>k</Key><Code>NoSuchKey</Code></Error></DeleteResult>')];
    await store.deleteMany(['k']);
  });
});

describe('what is absent', () => {
  it('is an object, not its bucket', async () => {
    s3.answers = [refusal(404, 'NoSuchKey')];
    await expect(store.get('k')).rejects.toMatchObject({ code: 'no_such_key' });
    s3.answers = [refusal(404, 'NoSuchBucket')];
    await expect(store.get('k')).rejects.toMatchObject(unavailable);
  });

  it('is null to head, which a refusal is not; what is there has an ETag, digest or not', async () => {
    s3.answers = [bare(404)];
    expect(await store.head('k')).toBeNull();
    s3.answers = [bare(200, { etag: '"e"', 'x-amz-server-side-encryption': 'aws:kms' })];
    expect(await store.head('k')).toMatchObject({ etag: '"e"', opaqueEtag: true });
    s3.answers = [bare(200, { etag: '"e"', 'x-amz-server-side-encryption': 'AES256' })];
    expect(await store.head('k')).not.toHaveProperty('opaqueEtag');
    for (const status of [403, 500, 503]) {
      s3.answers = [bare(status)];
      await expect(store.head('k')).rejects.toMatchObject(unavailable);
    }
  });
});

describe('a range', () => {
  const range = { start: 2, end: 5 };

  it.each([
    ['the whole object', bytes(Buffer.alloc(10))],
    ['another range', bytes(Buffer.alloc(4), { 'content-range': 'bytes 0-3/10' }, 206)],
    ['no total', bytes(Buffer.alloc(4), { 'content-range': 'bytes 2-5/*' }, 206)],
  ])('that is answered with %s is unavailable', async (_what, answer) => {
    s3.answers = [answer];
    await expect(store.get('k', { range })).rejects.toMatchObject(unavailable);
  });

  it('without bytes is not asked for: S3 would send everything', async () => {
    for (const none of [{ start: 5, end: 4 }, { start: -1 }, { start: 0.5 }, { start: 0, end: NaN }]) {
      await expect(store.get('k', { range: none })).rejects.toMatchObject({ code: 'invalid_range' });
    }
    expect(lines()).toEqual([]);
  });
});

describe('a busy server', () => {
  const slowDown = refusal(503, 'SlowDown');

  it('is asked again, as often as told', async () => {
    s3.answers = [slowDown, slowDown, bytes(Buffer.from('hello'))];
    const { stream } = await open({ limits: { tries: 3 } }).get('k');
    expect(Buffer.concat((await stream.toArray()) as Buffer[]).toString()).toBe('hello');
    s3.answers = [slowDown];
    await expect(open({ limits: { tries: 2 } }).put('k', Buffer.from('x'))).rejects.toMatchObject(
      unavailable,
    );
    expect(lines()).toHaveLength(5);
  });

  it('gets each part of a stream again, and no part twice when all is well', async () => {
    const patient = open({ limits: { tries: 2 }, putPartBytes: 4 });
    const part = bare(200, { etag: '"p"' });
    const begun = xml(
      '<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
    );
    s3.answers = [begun, slowDown, part, part, xml(joined)];
    const body = Readable.from([Buffer.from('abc'), Buffer.from('defgh'), Buffer.from('')]);
    expect(await patient.put('k', body)).toEqual({ etag: '"joined-1"', sizeBytes: 8 });
    expect(s3.calls.map((call) => call.body).slice(1, 4)).toEqual(['abcd', 'abcd', 'efgh']);
  });
});

describe('a stream that is put', () => {
  const begun = xml('<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>');
  const tenBytes = (): Readable => Readable.from([Buffer.alloc(10)]);

  it('leaves no upload behind when a part fails or the joining does', async () => {
    const small = open({ putPartBytes: 6 });
    const gone = refusal(404, 'NoSuchUpload');
    s3.answers = [begun, refusal(500, 'InternalError'), bare(204), gone];
    await expect(small.put('k', tenBytes())).rejects.toMatchObject(unavailable);
    expect(lines()[2]).toMatch(/^DELETE .*uploadId=u1/);
    const part = bare(200, { etag: '"p"' });
    // Nobody but this put can have ended its upload: to the caller that is an outage.
    s3.answers = [begun, part, part, gone, gone];
    await expect(small.put('k', tenBytes())).rejects.toMatchObject(unavailable);
    expect(lines().at(-1)).toMatch(/^DELETE .*uploadId=u1/);
  });

  it('tells of the failure, not of the one to clean up', async () => {
    const small = open({ putPartBytes: 6 });
    s3.answers = [begun, refusal(400, 'BadDigest'), refusal(500, 'InternalError')];
    await expect(small.put('k', tenBytes())).rejects.toThrow(/BadDigest/);
  });

  it('goes in equal parts, larger when it is told to be long', async () => {
    // 10,000 parts of 1 MiB are too small by one byte.
    const sizeBytes = 10_000 * 1024 ** 2 + 1;
    const body = new Readable({ read: () => undefined });
    const putting = open({ putPartBytes: 5 }).put('k', body, { sizeBytes });
    s3.answers = [begun, bare(200, { etag: '"p"' })];
    body.push(Buffer.alloc(2 * 1024 ** 2 + 1));
    await waitFor(() => lines().length === 2);
    expect(s3.calls[1]?.body).toHaveLength(2 * 1024 ** 2);
    s3.answers = [refusal(404, 'NoSuchUpload')];
    body.destroy(new Error('enough'));
    await expect(putting).rejects.toThrow('enough');
  });
});

describe('uploads', () => {
  const page = (key: string, id: string): string =>
    `<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>${key}</NextKeyMarker>` +
    `<NextUploadIdMarker>${id}</NextUploadIdMarker>` +
    `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>2030-01-01T00:00:00.000Z</Initiated></Upload>` +
    '</ListMultipartUploadsResult>';

  it('are listed on from a key and an upload of it', async () => {
    s3.answers = [xml(page('k', 'u/1+'))];
    const first = await store.listUploads();
    expect(first.items).toEqual([
      { key: 'k', uploadId: 'u/1+', startedAt: new Date('2030-01-01T00:00:00Z') },
    ]);
    s3.answers = [xml('<ListMultipartUploadsResult></ListMultipartUploadsResult>')];
    expect(await store.listUploads(first.next ?? '')).toEqual({ items: [], next: null });
    expect(lines()[1]).toContain('key-marker=k');
    expect(lines()[1]).toContain('upload-id-marker=u%2F1%2B');
  });

  it('are listed on from the key alone, where the upload is refused as a marker', async () => {
    s3.answers = [refusal(400, 'InvalidArgument'), xml(page('m', 'u2'))];
    const { items } = await store.listUploads(JSON.stringify(['k', 'gone']));
    expect(items).toHaveLength(1);
    expect(lines()[1]).not.toContain('upload-id-marker');
    s3.answers = [refusal(403, 'AccessDenied')];
    await expect(store.listUploads(JSON.stringify(['k', 'u']))).rejects.toMatchObject(unavailable);
  });
});

describe('check', () => {
  it('writes, and only reads where only that is needed', async () => {
    s3.answers = [refusal(403, 'AccessDenied')];
    await expect(store.check()).rejects.toMatchObject(unavailable);
    expect(lines()).toEqual(['PUT /bucket/.millrace-probe']);
    s3.answers = [bare(200)];
    await open({ readOnly: true }).check();
    expect(lines()[1]).toBe('HEAD /bucket/');
  });
});

it('tells errors apart by their cause, and never shows a signature', async () => {
  const warned: string[] = [];
  const warn = (fields: object): void => void warned.push(JSON.stringify(fields));
  s3.answers = [refusal(403, 'SignatureDoesNotMatch')];
  const logger = { ...s3.options.logger, warn };
  const error = (await open({ logger })
    .head('k')
    .catch((cause: unknown) => cause)) as Error;
  expect(error.message).toBe('the object store answered 403 Unknown');
  expect(JSON.stringify([error, error.cause, warned])).not.toMatch(/Signature=|not-a-secret/);
});
