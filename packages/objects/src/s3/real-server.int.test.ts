import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, createServer, connect, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { describeWith } from '../../../../dev/real-part.ts';
import { createBucket } from '../../../../dev/s3/bucket.ts';
import { type S3Server, startS3Server } from '../../../../dev/s3/server.ts';
import { missingForS3 } from '../../../../dev/s3/versitygw.ts';
import { putPart } from '../conformance/harness.ts';
import { type ObjectStore } from '../object-store.ts';
import { createS3ObjectStore, type S3ObjectStoreOptions } from './s3-object-store.ts';

const virtualDomain = 's3.test';
const unavailable = { name: 'ObjectStoreError', code: 'unavailable' };
const mebibyte = 1024 ** 2;

let server: S3Server;
let options: S3ObjectStoreOptions;
const stores: ObjectStore[] = [];
const open = (changes: Partial<S3ObjectStoreOptions> = {}): ObjectStore => {
  const store = createS3ObjectStore({ ...options, ...changes });
  stores.push(store);
  return store;
};

describeWith(missingForS3(), 'versitygw', () => {
  beforeAll(async () => {
    server = await startS3Server({ virtualDomain });
    options = await createBucket(server);
  }, 900_000);
  afterAll(async () => {
    for (const store of stores) await store.close();
    await server.stop();
  });

  describe('killed and started again', () => {
    it('has all that it acknowledged, and is used again without further ado', async () => {
      const store = open({ limits: { tries: 1, answerMs: 2_000 } });
      const [whole, first, last] = [randomBytes(300_000), randomBytes(5 * mebibyte), randomBytes(17)];
      await store.put('kept/object', whole);
      const key = 'kept/source';
      const upload = { key, uploadId: await store.createUpload(key) };
      const sent = await putPart(store, upload, 1, first);

      await server.kill();
      const down = [
        store.head('kept/object'),
        store.get('kept/object'),
        store.put('kept/other', Buffer.from('x')),
        store.put('kept/stream', Readable.from([whole])),
        store.listParts(upload),
        store.complete({ ...upload, parts: [sent] }),
        store.deleteMany(['kept/object']),
        store.list(''),
        store.check(),
      ];
      for (const call of down) await expect(call).rejects.toMatchObject(unavailable);
      await server.start();

      await store.check();
      expect(Buffer.concat((await (await store.get('kept/object')).stream.toArray()) as Buffer[])).toEqual(
        whole,
      );
      expect((await store.listParts(upload)).items).toEqual([{ ...sent, sizeBytes: first.length }]);
      const parts = [sent, await putPart(store, upload, 2, last)];
      expect(await store.complete({ ...upload, parts })).toMatchObject({
        sizeBytes: first.length + last.length,
      });
    });

    it('ends what was under way as unavailable', async () => {
      const store = open({ limits: { tries: 1 } });
      const source = new Readable({ read: () => undefined });
      const putting = store.put('cut/off', source);
      source.push(randomBytes(17 * mebibyte));
      await store.put('cut/large', randomBytes(64 * mebibyte));
      const { stream } = await store.get('cut/large');
      await server.kill();
      source.push(randomBytes(17 * mebibyte));
      source.push(null);
      await expect(putting).rejects.toMatchObject(unavailable);
      await expect(stream.toArray()).rejects.toMatchObject(unavailable);
      await server.start();
      expect(await store.head('cut/off')).toBeNull();
    });
  });

  describe('by the bucket’s own host name', () => {
    it('does everything, and takes parts', async () => {
      const { port } = new URL(server.endpoint);
      const store = open({
        endpoint: `http://${virtualDomain}:${port}`,
        pathStyle: false,
        lookup: (_name, { all }, found) => {
          if (all) found(null, [{ address: '127.0.0.1', family: 4 }]);
          else found(null, '127.0.0.1', 4);
        },
      });
      await store.check();
      const key = 'virtual/source';
      const upload = { key, uploadId: await store.createUpload(key) };
      const url = new URL(await store.presignPart({ ...upload, partNumber: 1, expiresAt: inAMinute() }));
      expect(url.host).toBe(`${options.bucket}.${virtualDomain}:${port}`);
      const etag = await putToHost(url, port, 'bytes');
      await store.complete({ ...upload, parts: [{ partNumber: 1, etag }] });
      // The path style sees the same object.
      expect(await open().head(key)).toMatchObject({ sizeBytes: 5 });
      expect((await store.list('virtual/')).items).toHaveLength(1);
      await store.deleteMany([key]);
      expect(await store.head(key)).toBeNull();
    });
  });

  describe('behind another public address', () => {
    it('takes parts there, and nowhere else', async () => {
      const front = await startFront(server);
      const store = open({ publicEndpoint: front.url });
      const upload = { key: 'public/source', uploadId: await store.createUpload('public/source') };
      const url = await store.presignPart({ ...upload, partNumber: 1, expiresAt: inAMinute() });
      expect(url.startsWith(`${front.url}/${options.bucket}/public/source?`)).toBe(true);
      const elsewhere = url.replace(front.url, server.endpoint);
      expect((await fetch(elsewhere, { method: 'PUT', body: 'x' })).status).toBe(403);
      expect((await fetch(url, { method: 'PUT', body: 'x' })).status).toBe(200);
      expect((await store.listParts(upload)).items).toHaveLength(1);
      await front.close();
    });
  });

  describe('its connections', () => {
    it('are as few as the gets at the same time, and all closed after an abort', async () => {
      const front = await startFront(server);
      const store = open({ endpoint: front.url });
      await store.put('sockets/object', randomBytes(8 * mebibyte));
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(
          Array.from({ length: 4 }, async (_, n) => {
            const { stream } = await store.get('sockets/object', {
              range: { start: n * 1_000, end: 900_000 },
            });
            await stream.toArray();
          }),
        );
      }
      expect(front.opened()).toBeLessThanOrEqual(4);
      const aborted = Array.from({ length: 12 }, async () => {
        const abort = new AbortController();
        const { stream } = await store.get('sockets/object', { range: { start: 5 }, signal: abort.signal });
        await once(stream, 'readable');
        abort.abort();
        await expect(stream.toArray()).rejects.toMatchObject({ name: 'AbortError' });
      });
      await Promise.all(aborted);
      await waitFor(() => front.open() === 0);
      await front.close();
    });
  });
});

const inAMinute = (): Date => new Date(Date.now() + 60_000);

/** A PUT to a host that no name server knows; returns the ETag. */
async function putToHost(url: URL, port: string, body: string): Promise<string> {
  const sending = request({
    ...{ host: '127.0.0.1', port, method: 'PUT', path: url.pathname + url.search },
    headers: { host: url.host, 'content-length': body.length },
  });
  sending.end(body);
  const [response] = (await once(sending, 'response')) as [
    { statusCode: number; headers: { etag: string } } & Readable,
  ];
  response.resume();
  await once(response, 'end');
  expect(response.statusCode).toBe(200);
  return response.headers.etag;
}

/** A TCP proxy before the server that counts its connections. */
async function startFront(
  behind: S3Server,
): Promise<{ url: string; opened(): number; open(): number; close(): Promise<void> }> {
  const open = new Set<Socket>();
  let opened = 0;
  const { hostname, port } = new URL(behind.endpoint);
  const front: Server = createServer((socket) => {
    opened += 1;
    open.add(socket);
    const onward = connect(Number(port), hostname);
    socket.pipe(onward).pipe(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        open.delete(socket);
        onward.destroy();
      });
    onward.on('error', () => undefined).on('close', () => socket.destroy());
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    opened: () => opened,
    open: () => open.size,
    close: async () => {
      for (const socket of open) socket.destroy();
      front.close();
      await once(front, 'close');
    },
  };
}
