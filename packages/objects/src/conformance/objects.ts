import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { allPages, etagOf, newPrefix, type ObjectStoreHarness, readAll } from './harness.ts';

/** Registers the tests of objects: put, get, head, list and delete. */
export function objectTests(current: () => ObjectStoreHarness): void {
  const store = (): ObjectStoreHarness['store'] => current().store;

  describe('put, head and get', () => {
    it('keep bytes, size, ETag and time', async () => {
      const key = `${newPrefix()}/object.bin`;
      const bytes = randomBytes(700_001);
      const before = Date.now();
      expect(await store().put(key, bytes)).toEqual({ etag: etagOf(bytes), sizeBytes: bytes.length });
      const head = await store().head(key);
      expect(head).toMatchObject({ key, etag: etagOf(bytes), sizeBytes: bytes.length });
      // S3 tells whole seconds.
      expect(Math.abs((head?.lastModified.getTime() ?? 0) - before)).toBeLessThan(60_000);
      const { stream, ...told } = await store().get(key);
      expect(told).toEqual({ etag: etagOf(bytes), sizeBytes: bytes.length, totalBytes: bytes.length });
      expect(Buffer.concat((await stream.toArray()) as Buffer[]).equals(bytes)).toBe(true);
    });

    it('take a stream, and an empty object', async () => {
      const prefix = newPrefix();
      const chunks = [randomBytes(10), randomBytes(100_000), randomBytes(1)];
      await store().put(`${prefix}/stream`, Readable.from(chunks));
      expect((await readAll(store(), `${prefix}/stream`)).equals(Buffer.concat(chunks))).toBe(true);
      expect(await store().put(`${prefix}/empty`, Buffer.alloc(0))).toMatchObject({ sizeBytes: 0 });
      expect(await readAll(store(), `${prefix}/empty`)).toHaveLength(0);
    });

    it('answer no_such_key or null for what is absent', async () => {
      const prefix = newPrefix();
      await store().put(`${prefix}/folder/file`, Buffer.from('x'));
      for (const key of [`${prefix}/absent`, `${prefix}/folder`, `${prefix}/folder/file/below`]) {
        await expect(store().get(key)).rejects.toMatchObject({
          name: 'ObjectStoreError',
          code: 'no_such_key',
        });
        expect(await store().head(key)).toBeNull();
      }
    });

    it('store nothing when the source fails or the put is aborted', async () => {
      const key = `${newPrefix()}/object`;
      const broken = new Error('the source broke');
      const failing = Readable.from(
        (async function* () {
          yield randomBytes(1_000);
          await Promise.reject(broken);
        })(),
      );
      await expect(store().put(key, failing)).rejects.toBe(broken);
      const aborted = new AbortController();
      const reason = new Error('no longer wanted');
      // It gives one chunk and then stalls for ever.
      const chunks = [randomBytes(200_000)];
      let stall: () => void = () => undefined;
      const stalling = new Promise<void>((resolve) => (stall = resolve));
      const stalled = new Readable({
        read() {
          const chunk = chunks.pop();
          if (chunk) this.push(chunk);
          else stall();
        },
      });
      const putting = store().put(key, stalled, { signal: aborted.signal });
      await stalling;
      // The chunk before is under way by then: the put waits for the source alone.
      await nextTurn();
      aborted.abort(reason);
      await expect(putting).rejects.toBe(reason);
      expect(await store().head(key)).toBeNull();
    });

    it('take a stream of the length that is told, and of no other', async () => {
      const key = `${newPrefix()}/object`;
      const chunks = [randomBytes(70_000), randomBytes(30_000)];
      for (const sizeBytes of [0, 70_000, 99_999, 100_001]) {
        await expect(store().put(key, Readable.from(chunks), { sizeBytes })).rejects.toBeInstanceOf(
          RangeError,
        );
      }
      expect(await store().head(key)).toBeNull();
      expect(await store().put(key, Readable.from(chunks), { sizeBytes: 100_000 })).toMatchObject({
        sizeBytes: 100_000,
      });
      expect((await readAll(store(), key)).equals(Buffer.concat(chunks))).toBe(true);
    });

    it('take a stream longer than what is sent at once', async () => {
      const key = `${newPrefix()}/object`;
      const chunks = Array.from({ length: 40 }, () => randomBytes(300_000));
      const whole = Buffer.concat(chunks);
      const stored = await store().put(key, Readable.from(chunks));
      expect(stored.sizeBytes).toBe(whole.length);
      expect(await store().head(key)).toMatchObject({ etag: stored.etag, sizeBytes: whole.length });
      expect((await readAll(store(), key)).equals(whole)).toBe(true);
    });

    it('show the old or the new object while one replaces the other', async () => {
      const key = `${newPrefix()}/object`;
      const versions = [Buffer.alloc(300_000, 'a'), Buffer.alloc(200_000, 'b')] as const;
      await store().put(key, versions[0]);
      const writes = (async () => {
        for (let turn = 1; turn < 20; turn += 1) await store().put(key, versions[turn % 2] ?? versions[0]);
      })();
      for (let turn = 0; turn < 40; turn += 1) {
        const { stream, etag, sizeBytes } = await store().get(key);
        const bytes = Buffer.concat((await stream.toArray()) as Buffer[]);
        expect([sizeBytes, etag]).toEqual([bytes.length, etagOf(bytes)]);
        expect(versions.some((version) => version.equals(bytes))).toBe(true);
      }
      await writes;
    });
  });

  describe('ranges', () => {
    it('are those of the bytes, whatever the range', async () => {
      const key = `${newPrefix()}/object`;
      const bytes = randomBytes(1_000);
      await store().put(key, bytes);
      const ranges = fc.record({ start: fc.nat(999), span: fc.option(fc.nat(1_500)) });
      await fc.assert(
        fc.asyncProperty(ranges, async ({ start, span }) => {
          const end = span === null ? undefined : start + span;
          const body = await store().get(key, { range: { start, ...(end === undefined ? {} : { end }) } });
          const got = Buffer.concat((await body.stream.toArray()) as Buffer[]);
          const wanted = bytes.subarray(start, end === undefined ? undefined : end + 1);
          expect(got.equals(wanted)).toBe(true);
          expect(body).toMatchObject({ sizeBytes: wanted.length, totalBytes: 1_000, etag: etagOf(bytes) });
        }),
        { numRuns: 50 },
      );
    });

    it('that start past the end are invalid', async () => {
      const prefix = newPrefix();
      await store().put(`${prefix}/ten`, Buffer.alloc(10));
      await store().put(`${prefix}/empty`, Buffer.alloc(0));
      const refused = { code: 'invalid_range' };
      await expect(store().get(`${prefix}/ten`, { range: { start: 10 } })).rejects.toMatchObject(refused);
      await expect(store().get(`${prefix}/empty`, { range: { start: 0 } })).rejects.toMatchObject(refused);
    });
  });

  describe('reading', () => {
    it('ends when its signal aborts', async () => {
      const key = `${newPrefix()}/object`;
      await store().put(key, randomBytes(3_000_000));
      const controller = new AbortController();
      const { stream } = await store().get(key, { signal: controller.signal });
      controller.abort();
      await expect(stream.toArray()).rejects.toMatchObject({ name: 'AbortError' });
      await expect(store().get(key, { signal: controller.signal })).rejects.toBe(controller.signal.reason);
    });
  });

  describe('keys', () => {
    const bad = [
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      'a/../b',
      './a',
      'a/.',
      'a b',
      'ä',
      'a\0',
      'a\n',
      'a%2fb',
      'a\\b',
    ];
    it.each([...bad, 'x'.repeat(256), `${'x/'.repeat(256)}x`])('refuse %j everywhere', async (key) => {
      const refused = { name: 'ObjectStoreError', code: 'invalid_key' };
      await expect(store().put(key, Buffer.from('x'))).rejects.toMatchObject(refused);
      await expect(store().get(key)).rejects.toMatchObject(refused);
      await expect(store().head(key)).rejects.toMatchObject(refused);
      await expect(store().deleteMany([key])).rejects.toMatchObject(refused);
      await expect(store().createUpload(key)).rejects.toMatchObject(refused);
      const expiresAt = new Date(Date.now() + 60_000);
      await expect(
        store().presignPart({ key, uploadId: 'u', partNumber: 1, expiresAt }),
      ).rejects.toMatchObject(refused);
    });

    it('take every character of the grammar, and 512 of them', async () => {
      const prefix = newPrefix();
      const long = `${prefix}/${'x'.repeat(255)}/`;
      for (const key of [`${prefix}/...`, `${prefix}/-_.Az09..`, long + 'y'.repeat(512 - long.length)]) {
        await store().put(key, Buffer.from(key));
        expect((await readAll(store(), key)).toString()).toBe(key);
      }
    });
  });

  describe('list and deleteMany', () => {
    it('list what begins with a prefix, by rising bytes, in pages', async () => {
      const prefix = newPrefix();
      // Sorted as S3 does: `-` < `.` < `/` < digits < capitals < `_` < small letters.
      const sorted = ['a-b', 'a.b', 'a/b', 'a/c/d', 'a0', 'aB', 'a_b', 'ab', 'b/a', 'b0'].map(
        (name) => `${prefix}/${name}`,
      );
      for (const key of [...sorted].reverse()) await store().put(key, Buffer.from(key));
      const found = await allPages((after) => store().list(`${prefix}/`, after));
      expect(found.map((item) => item.key)).toEqual(sorted);
      expect(found[0]).toMatchObject({
        etag: etagOf(Buffer.from(sorted[0] ?? '')),
        sizeBytes: sorted[0]?.length,
      });
      const first = await store().list(`${prefix}/`);
      expect(first.items).toHaveLength(current().pageSize);
      const under = async (start: string): Promise<string[]> =>
        (await allPages((after) => store().list(start, after))).map((item) => item.key);
      expect(await under(`${prefix}/a/`)).toEqual(sorted.slice(2, 4));
      expect(await under(`${prefix}/b`)).toEqual(sorted.slice(8));
      expect(await under(`${prefix}/a/c/d`)).toEqual(sorted.slice(3, 4));
      expect(await under(`${prefix}/nothing`)).toEqual([]);
    });

    it('delete many at once, and take absent keys', async () => {
      const prefix = newPrefix();
      const keys = Array.from({ length: 12 }, (_, index) => `${prefix}/${index % 3}/${index}`);
      await Promise.all(keys.map((key) => store().put(key, Buffer.from(key))));
      await store().deleteMany([
        ...keys.slice(1),
        ...Array.from({ length: 1_001 }, (_, n) => `${prefix}/absent/${n}`),
      ]);
      expect((await allPages((after) => store().list(`${prefix}/`, after))).map((item) => item.key)).toEqual([
        keys[0],
      ]);
      await store().deleteMany([]);
      await store().deleteMany(keys);
      expect((await store().list(`${prefix}/`)).items).toEqual([]);
      // The place is free again, for an object too.
      await store().put(`${prefix}/0`, Buffer.from('now an object'));
    });
  });

  it('check resolves while the store can be written', () => expect(store().check()).resolves.toBeUndefined());
}
