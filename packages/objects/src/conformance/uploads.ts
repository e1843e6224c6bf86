import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import {
  allPages,
  etagOf,
  fullPart,
  md5,
  newPrefix,
  type ObjectStoreHarness,
  presign,
  put,
  putPart,
  readAll,
} from './harness.ts';

/** Registers the tests of multipart uploads, whose parts go over HTTP to their pre-signed URLs. */
export function uploadTests(current: () => ObjectStoreHarness): void {
  const store = (): ObjectStoreHarness['store'] => current().store;
  const begin = async (key = `${newPrefix()}/source`): Promise<{ key: string; uploadId: string }> => ({
    key,
    uploadId: await store().createUpload(key),
  });

  describe('a multipart upload', () => {
    it('joins its parts, with S3’s ETag', async () => {
      const upload = await begin();
      const bodies = [fullPart(), fullPart(), randomBytes(17)] as const;
      // In any order, as clients do.
      const third = await putPart(store(), upload, 3, bodies[2]);
      const first = await putPart(store(), upload, 1, bodies[0]);
      const second = await putPart(store(), upload, 2, bodies[1]);
      expect(second.etag).toBe(etagOf(bodies[1]));
      expect(
        await allPages((after) => store().listParts({ ...upload, ...(after ? { after } : {}) })),
      ).toEqual(
        bodies.map((body, index) => ({ partNumber: index + 1, etag: etagOf(body), sizeBytes: body.length })),
      );
      expect(await store().head(upload.key)).toBeNull();

      const whole = Buffer.concat(bodies);
      const etag = `"${md5(Buffer.from(bodies.map(md5).join(''), 'hex'))}-3"`;
      expect(await store().complete({ ...upload, parts: [first, second, third] })).toEqual({
        etag,
        sizeBytes: whole.length,
      });
      expect(await store().head(upload.key)).toMatchObject({ etag, sizeBytes: whole.length });
      expect((await readAll(store(), upload.key)).equals(whole)).toBe(true);
      // Ranges inside a part, over the edges of parts, and to the end.
      const edge = bodies[0].length;
      for (const [start, end] of [
        [0, 0],
        [edge - 3, edge + 2],
        [edge, edge],
        [edge - 1, 2 * edge],
        [2 * edge + 5, 3 * edge],
      ] as const) {
        const got = await readAll(store(), upload.key, { start, end });
        expect(got.equals(whole.subarray(start, end + 1))).toBe(true);
      }
      await store().deleteMany([upload.key]);
      expect(await store().head(upload.key)).toBeNull();
    });

    it('keeps the last of several bodies of one part', async () => {
      const upload = await begin();
      await putPart(store(), upload, 1, Buffer.from('first'));
      const part = await putPart(store(), upload, 1, Buffer.from('second'));
      await store().complete({ ...upload, parts: [part] });
      expect((await readAll(store(), upload.key)).toString()).toBe('second');
    });

    it('never mixes bodies that come at the same time', async () => {
      const upload = await begin();
      const bodies = Array.from({ length: 6 }, (_, index) => Buffer.alloc(500_000 + index, String(index)));
      await Promise.all(bodies.map((body) => putPart(store(), upload, 1, body)));
      const [part] = (await store().listParts(upload)).items;
      await store().complete({ ...upload, parts: [{ partNumber: 1, etag: part?.etag ?? '' }] });
      const got = await readAll(store(), upload.key);
      expect(bodies.some((body) => body.equals(got) && etagOf(body) === part?.etag)).toBe(true);
    });

    it('drops the parts that complete does not name', async () => {
      const upload = await begin();
      const first = await putPart(store(), upload, 1, Buffer.from('one'));
      await putPart(store(), upload, 2, Buffer.from('two'));
      expect(await store().complete({ ...upload, parts: [first] })).toMatchObject({ sizeBytes: 3 });
      expect((await readAll(store(), upload.key)).toString()).toBe('one');
    });
  });

  describe('complete', () => {
    it('refuses a wrong list as S3 does, and the upload stays open', async () => {
      const upload = await begin();
      const small = await putPart(store(), upload, 1, Buffer.from('small'));
      const last = await putPart(store(), upload, 2, Buffer.from('last'));
      const other = { partNumber: 2, etag: etagOf(Buffer.from('other')) };
      const cases = [
        ['invalid_part', []],
        ['invalid_part', [other]],
        ['invalid_part', [{ ...last, partNumber: 3 }]],
        ['invalid_part_order', [last, small]],
        ['invalid_part_order', [last, last]],
        ['part_too_small', [small, last]],
      ] as const;
      for (const [code, parts] of cases) {
        await expect(store().complete({ ...upload, parts })).rejects.toMatchObject({
          name: 'ObjectStoreError',
          code,
        });
      }
      expect(await store().head(upload.key)).toBeNull();
      await store().complete({ ...upload, parts: [last] });
      expect((await readAll(store(), upload.key)).toString()).toBe('last');
    });

    it('closes the upload: afterwards everything about it is no_such_upload', async () => {
      const upload = await begin();
      const part = await putPart(store(), upload, 1, Buffer.from('body'));
      await store().complete({ ...upload, parts: [part] });
      const closed = { code: 'no_such_upload' };
      await expect(store().listParts(upload)).rejects.toMatchObject(closed);
      // Whatever else is wrong with a list.
      await expect(store().complete({ ...upload, parts: [] })).rejects.toMatchObject(closed);
      await expect(store().complete({ ...upload, parts: [part, part] })).rejects.toMatchObject(closed);
      expect(await late(await presign(store(), upload, 1))).toEqual([404, 'NoSuchUpload']);
      await store().abort(upload);
      expect((await readAll(store(), upload.key)).toString()).toBe('body');
    });

    it('does not take an object of other parts for one of these', async () => {
      const upload = await begin();
      const before = await putPart(store(), upload, 1, Buffer.from('before'));
      const after = await putPart(store(), upload, 1, Buffer.from('after!'));
      await store().complete({ ...upload, parts: [after] });
      await expect(store().complete({ ...upload, parts: [before] })).rejects.toMatchObject({
        code: 'no_such_upload',
      });
      expect((await readAll(store(), upload.key)).toString()).toBe('after!');
    });

    it('wins once when called several times at once', async () => {
      const upload = await begin();
      const parts = [await putPart(store(), upload, 1, Buffer.from('body'))];
      const results = await Promise.allSettled([1, 2, 3].map(() => store().complete({ ...upload, parts })));
      // S3 may answer a repeated call with the first result; it never makes a second object.
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'no_such_upload' });
      }
      expect(results.some((result) => result.status === 'fulfilled')).toBe(true);
      expect((await readAll(store(), upload.key)).toString()).toBe('body');
    });
  });

  describe('abort', () => {
    it('drops the parts, and is fine with unknown uploads', async () => {
      const upload = await begin();
      await putPart(store(), upload, 1, Buffer.from('body'));
      await store().abort(upload);
      await store().abort(upload);
      await expect(store().listParts(upload)).rejects.toMatchObject({ code: 'no_such_upload' });
      await expect(
        store().complete({ ...upload, parts: [{ partNumber: 1, etag: etagOf(Buffer.from('body')) }] }),
      ).rejects.toMatchObject({ code: 'no_such_upload' });
      expect(await late(await presign(store(), upload, 1))).toEqual([404, 'NoSuchUpload']);
      expect(await store().head(upload.key)).toBeNull();
    });
  });

  describe('an upload of another key', () => {
    it('is unknown', async () => {
      const upload = await begin();
      const part = await putPart(store(), upload, 1, Buffer.from('body'));
      const other = { ...upload, key: `${upload.key}-other` };
      const unknown = { code: 'no_such_upload' };
      await expect(store().listParts(other)).rejects.toMatchObject(unknown);
      await expect(store().complete({ ...other, parts: [part] })).rejects.toMatchObject(unknown);
      expect(await late(await presign(store(), other, 1))).toEqual([404, 'NoSuchUpload']);
      await store().abort(other);
      expect((await store().listParts(upload)).items).toHaveLength(1);
    });
  });

  describe('lists', () => {
    it('list open uploads, and only those, in pages', async () => {
      const prefix = newPrefix();
      const opened = await Promise.all(
        Array.from({ length: current().pageSize + 3 }, (_, index) => begin(`${prefix}/${index}`)),
      );
      const [aborted, completed, ...open] = opened;
      if (!aborted || !completed) throw new Error('too few uploads');
      await store().abort(aborted);
      const part = await putPart(store(), completed, 1, Buffer.from('x'));
      await store().complete({ ...completed, parts: [part] });
      const all = await allPages((after) => store().listUploads(after));
      const mine = all.filter((upload) => upload.key.startsWith(`${prefix}/`));
      expect(new Set(mine.map(({ key, uploadId }) => `${key} ${uploadId}`))).toEqual(
        new Set(open.map(({ key, uploadId }) => `${key} ${uploadId}`)),
      );
      expect(mine[0]?.startedAt).toBeInstanceOf(Date);
      await Promise.all(mine.map((upload) => store().abort(upload)));
    });

    it('list parts by rising number, in pages', async () => {
      const upload = await begin();
      const numbers = [10_000, 2, 1, 10, 9, 100, 11].slice(0, current().pageSize + 3);
      await Promise.all(
        numbers.map((number) => putPart(store(), upload, number, Buffer.from(String(number)))),
      );
      expect((await store().listParts(upload)).items).toHaveLength(
        Math.min(current().pageSize, numbers.length),
      );
      const all = await allPages((after) => store().listParts({ ...upload, ...(after ? { after } : {}) }));
      expect(all.map((part) => part.partNumber)).toEqual([...numbers].sort((a, b) => a - b));
      expect(all.map((part) => part.etag)).toEqual(
        all.map((part) => etagOf(Buffer.from(String(part.partNumber)))),
      );
    });
  });

  describe('a part URL', () => {
    it('takes a bare PUT with any content type, and shows its ETag to any origin [UPL-210, UPL-212]', async () => {
      const upload = await begin();
      const url = await presign(store(), upload, 1);
      const origin = 'https://customer.example';
      const response = await put(url, 'body', { origin, 'content-type': 'x/y' });
      expect(response.status).toBe(200);
      expect(response.headers.get('etag')).toBe(etagOf(Buffer.from('body')));
      expect(['*', origin]).toContain(response.headers.get('access-control-allow-origin'));
      expect(response.headers.get('access-control-expose-headers')?.toLowerCase()).toMatch(/\betag\b|\*/);
      const asked = {
        origin,
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'content-type',
      };
      const preflight = await fetch(url, { method: 'OPTIONS', headers: asked });
      expect(preflight.ok).toBe(true);
      expect(['*', origin]).toContain(preflight.headers.get('access-control-allow-origin'));
      expect(preflight.headers.get('access-control-allow-methods')).toMatch(/\bPUT\b/);
      expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toMatch(/content-type|\*/);
    });

    it('binds part, upload, key and method [UPL-004]', async () => {
      const upload = await begin();
      const other = await begin();
      const url = await presign(store(), upload, 1);
      const tampered = [
        url.replace('partNumber=1', 'partNumber=2'),
        url.replace(upload.uploadId, other.uploadId),
        url.replace(upload.key, other.key),
        url.slice(0, -1) + (url.endsWith('A') ? 'B' : 'A'),
        url.split('?')[0] ?? '',
      ];
      for (const forged of tampered) expect((await late(forged))[0]).toBe(403);
      for (const method of ['GET', 'POST', 'DELETE']) {
        const response = await fetch(url, { method });
        expect([403, 405]).toContain(response.status);
        await response.arrayBuffer();
      }
      expect((await store().listParts(upload)).items).toEqual([]);
      expect((await store().listParts(other)).items).toEqual([]);
    });

    it('takes a body of the size that it binds, and of no other', async () => {
      const upload = await begin();
      const expiresAt = new Date(Date.now() + 60_000);
      const url = await store().presignPart({ ...upload, partNumber: 1, expiresAt, sizeBytes: 4 });
      for (const body of ['123', '12345', '']) expect((await late(url, body))[0]).toBe(403);
      expect((await store().listParts(upload)).items).toEqual([]);
      expect((await put(url, '1234')).status).toBe(200);
      expect((await store().listParts(upload)).items).toMatchObject([{ partNumber: 1, sizeBytes: 4 }]);
    });

    it('is refused from its expiry on [UPL-003]', async () => {
      const upload = await begin();
      const url = await store().presignPart({ ...upload, partNumber: 1, expiresAt: new Date() });
      expect(await late(url)).toEqual([403, 'AccessDenied']);
      expect((await store().listParts(upload)).items).toEqual([]);
    });

    it('leaves nothing of a body that breaks off', async () => {
      const upload = await begin();
      const before = await putPart(store(), upload, 1, Buffer.from('whole'));
      const sending = request(await presign(store(), upload, 1), {
        method: 'PUT',
        headers: { 'content-length': 1_000_000 },
      });
      sending.on('error', () => undefined);
      const closed = new Promise((resolve) => sending.once('close', resolve));
      await new Promise((resolve) => sending.write(Buffer.alloc(500_000), resolve));
      sending.destroy();
      await closed;
      const parts = await store().listParts(upload);
      expect(parts.items).toEqual([{ ...before, sizeBytes: 5 }]);
    });
  });
}

/** Status and S3 error code of a PUT that is to be refused. */
async function late(url: string, body = 'late'): Promise<[number, string | undefined]> {
  const response = await put(url, body);
  return [response.status, /<Code>(\w+)<\/Code>/.exec(await response.text())?.[1]];
}
