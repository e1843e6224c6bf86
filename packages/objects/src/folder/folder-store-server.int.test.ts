import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  captureLogger,
  type CapturedLog,
  createManualClock,
  type ManualClock,
  waitFor,
} from '@millrace/testing';
import fc from 'fast-check';
import { etagOf, md5, presign, put, readAll } from '../conformance/harness.ts';
import { ObjectStoreError } from '../object-store.ts';
import { createFolderStoreServer } from './folder-store-server.ts';
import { createTestStore, type TestStore } from './test-store.ts';

let test: TestStore;
let clock: ManualClock;
let log: CapturedLog;
let upload: { key: string; uploadId: string };

async function open(options: Parameters<typeof createTestStore>[0] = {}): Promise<void> {
  clock = createManualClock();
  log = captureLogger();
  test = await createTestStore({ clock, logger: log.logger, maxPartBytes: 10_000_000, ...options });
  upload = { key: 'videos/vid_1/source', uploadId: await test.store.createUpload('videos/vid_1/source') };
}
beforeEach(() => open());
afterEach(() => test.close());

const urlOf = (seconds = 60, partNumber = 1): Promise<string> =>
  test.store.presignPart({
    ...upload,
    partNumber,
    expiresAt: new Date(clock.now().getTime() + seconds * 1_000),
  });
const pathOf = async (): Promise<string> => (await urlOf()).replace(/^http:\/\/[^/]+/, '');

/** Names under the store's temporary folders and the upload's: what a refused body must not add to. */
async function leftovers(): Promise<string[]> {
  const temp = path.join(test.root, 'temp');
  const inTemp = await Promise.all((await readdir(temp)).map((name) => readdir(path.join(temp, name))));
  return [...inTemp.flat(), ...(await readdir(path.join(test.root, 'uploads', upload.uploadId)))];
}

async function refusal(response: Response): Promise<unknown[]> {
  const xml = await response.text();
  expect(response.headers.get('content-type')).toBe('application/xml');
  // A browser shows a refusal to its page only with this.
  expect(response.headers.get('access-control-allow-origin')).toBe('*');
  expect(xml).toContain(`<RequestId>${response.headers.get('x-request-id')}</RequestId>`);
  return [response.status, /<Code>(\w+)<\/Code>/.exec(xml)?.[1], /<Message>(.*)<\/Message>/.exec(xml)?.[1]];
}

/** Sends exactly these bytes and returns all that comes back until the server closes, or `until` is seen. */
function raw(text: string | Buffer, until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(test.server.port, '127.0.0.1', () => socket.write(text));
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk;
      if (until !== undefined && received.includes(until)) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
  });
}

describe('expiry and signature', () => {
  it('an expired URL is refused by name, from its very instant [UPL-003]', async () => {
    const url = await urlOf(60);
    await clock.advance(59_999);
    expect((await put(url, 'in time')).status).toBe(200);
    await clock.advance(1);
    expect(await refusal(await put(url, 'late'))).toEqual([403, 'AccessDenied', 'Request has expired']);
    expect((await test.store.listParts(upload)).items).toMatchObject([
      { etag: etagOf(Buffer.from('in time')) },
    ]);
  });

  it('a forged one too, and one without a signature', async () => {
    const url = await urlOf();
    const forged = url.replace(
      /expires=\d+/,
      (text) => `${text.slice(0, -1)}${text.endsWith('9') ? '8' : '9'}`,
    );
    expect((await refusal(await put(forged, 'x')))[1]).toBe('SignatureDoesNotMatch');
    expect((await refusal(await put(url.replace(/&signature=.*/, ''), 'x'))).slice(0, 2)).toEqual([
      403,
      'AccessDenied',
    ]);
    expect(await leftovers()).toEqual(['upload.json']);
  });
});

describe('what is not a part', () => {
  it.each(['GET', 'HEAD', 'POST', 'DELETE', 'PATCH'])('%s is not allowed [UPL-213]', async (method) => {
    const response = await fetch(await urlOf(), { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'PUT, OPTIONS']);
    await response.arrayBuffer();
  });

  it('a body without a length is refused', async () => {
    const path = await pathOf();
    const answer = await raw(
      `PUT ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`,
      '</Error>',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 411 [^]*MissingContentLength/);
    expect(await leftovers()).toEqual(['upload.json']);
  });

  it('a body over the bound is refused before it is read', async () => {
    expect((await refusal(await put(await urlOf(), Buffer.alloc(10_000_001)))).slice(0, 2)).toEqual([
      400,
      'EntityTooLarge',
    ]);
    const five = 5 * 1024 ** 3 + 1;
    await test.close();
    await open({ maxPartBytes: five - 1 });
    const answer = await raw(
      `PUT ${await pathOf()} HTTP/1.1\r\nHost: x\r\nContent-Length: ${five}\r\n\r\n`,
      '</Error>',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*EntityTooLarge/);
    expect(await leftovers()).toEqual(['upload.json']);
  });

  it('a body whose MD5 differs from its Content-MD5 is refused', async () => {
    const right = Buffer.from(md5(Buffer.from('body')), 'hex').toString('base64');
    const url = await urlOf();
    expect((await refusal(await put(url, 'other', { 'content-md5': right })))[1]).toBe('BadDigest');
    expect((await refusal(await put(url, 'body', { 'content-md5': 'short' })))[1]).toBe('InvalidDigest');
    expect(await leftovers()).toEqual(['upload.json']);
    expect((await put(url, 'body', { 'content-md5': right })).status).toBe(200);
  });
});

describe('CORS', () => {
  it('allows PUT with any header from any origin, and no other method [UPL-211]', async () => {
    const url = await urlOf();
    const ask = (method: string): Promise<Response> =>
      fetch(url, {
        method: 'OPTIONS',
        headers: { origin: 'https://a.example', 'access-control-request-method': method },
      });
    const allowed = await ask('PUT');
    expect(allowed.status).toBe(204);
    expect(Object.fromEntries(allowed.headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': '*',
    });
    expect((await refusal(await ask('DELETE'))).slice(0, 2)).toEqual([403, 'AccessForbidden']);
  });
});

describe('Expect: 100-continue', () => {
  const head = (path: string): string =>
    `PUT ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`;

  it('is answered when the body is wanted', async () => {
    const path = await pathOf();
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(test.server.port, '127.0.0.1', () => socket.write(head(path)));
      let received = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        received += chunk;
        if (received === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write('body');
        if (received.includes('HTTP/1.1 200')) socket.destroy();
      });
      socket.on('error', reject).on('close', () => resolve(received));
    });
    expect(answer).toContain(`ETag: ${etagOf(Buffer.from('body'))}`);
  });

  it('is refused without asking for the body, and the connection closes', async () => {
    const path = await pathOf();
    await test.store.abort(upload);
    const answer = await raw(head(path));
    expect(answer).toMatch(/^HTTP\/1\.1 404 [^]*NoSuchUpload/);
    expect(answer).not.toContain('100 Continue');
  });
});

describe('bodies that misbehave', () => {
  it('a silent one is cut off with a word, and leaves nothing', async () => {
    await test.close();
    await open({ idleTimeoutMs: 150 });
    const answer = await raw(
      `PUT ${await pathOf()} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*RequestTimeout/);
    await waitFor(async () => (await leftovers()).length === 1, { what: 'the half part to go' });
  });

  it('one that breaks off leaves nothing', async () => {
    const sending = httpRequest(await urlOf(), { method: 'PUT', headers: { 'content-length': 5_000_000 } });
    sending.on('error', () => undefined);
    sending.write(Buffer.alloc(300_000));
    await waitFor(async () => (await leftovers()).length === 2, { what: 'the half part to be on disk' });
    sending.destroy();
    await waitFor(async () => (await leftovers()).length === 1, { what: 'the half part to go' });
    expect(log.lines.some((line) => line.message === 'part interrupted')).toBe(true);
  });

  it('a sender of a refused big body gets to read why', async () => {
    const url = await urlOf(60);
    await clock.advance(60_000);
    for (let turn = 0; turn < 5; turn += 1) {
      expect((await refusal(await put(url, Buffer.alloc(8_000_000))))[1]).toBe('AccessDenied');
    }
  });

  it('one that the disk fails in the middle of gets an answer that is worth a retry', async () => {
    const failing = createFolderStoreServer({
      logger: log.logger,
      store: {
        ...test.store,
        receivePart: async ({ body }) => {
          for await (const chunk of body) {
            throw new ObjectStoreError('unavailable', `the disk failed at ${chunk.length} bytes`);
          }
          throw new Error('no body came');
        },
      },
    });
    await failing.start(AbortSignal.timeout(5_000));
    const url = (await urlOf()).replace(String(test.server.port), String(failing.port));
    const response = await put(url, Buffer.alloc(8_000_000));
    expect((await refusal(response)).slice(0, 2)).toEqual([503, 'ServiceUnavailable']);
    expect(response.headers.get('retry-after')).toBe('5');
    await failing.stop();
  });

  it('one whose upload is closed meanwhile is told so, and leaves nothing', async () => {
    const sending = httpRequest(await urlOf(), { method: 'PUT', headers: { 'content-length': 1_000_000 } });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      sending.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sending.on('error', reject);
    });
    sending.write(Buffer.alloc(500_000));
    await waitFor(async () => (await leftovers()).length === 2, { what: 'the half part to be on disk' });
    await test.store.abort(upload);
    sending.end(Buffer.alloc(500_000));
    expect(await answered).toBe(404);
    const temp = path.join(test.root, 'temp');
    for (const name of await readdir(temp)) expect(await readdir(path.join(temp, name))).toEqual([]);
  });
});

describe('hostile URLs', () => {
  it('never reach a file outside the upload, nor break the server', async () => {
    await writeFile(path.join(test.base, 'canary'), 'canary');
    const good = await pathOf();
    const query = good.slice(good.indexOf('?'));
    const piece = fc.oneof(
      fc.constantFrom(
        '..',
        '.',
        '',
        '%2e%2e',
        '%2E%2e',
        '%2f',
        '%5c',
        '\\',
        '%00',
        '//',
        'canary',
        'upload',
        'videos',
      ),
      fc.string({ maxLength: 5, unit: 'grapheme-ascii' }).map((text) => text.replace(/[\s?#]/g, '')),
    );
    const hostile = fc.tuple(fc.array(piece, { maxLength: 8 }), fc.constantFrom('', '/upload'), fc.boolean());
    await fc.assert(
      fc.asyncProperty(hostile, async ([pieces, start, signed]) => {
        const target = `${start}/${pieces.join('/')}${signed ? query : ''}`;
        fc.pre(target !== good);
        const answer = await raw(
          `PUT ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nConnection: close\r\n\r\nhostile`,
        );
        expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
      }),
      { numRuns: 200 },
    );
    const tooLong = await raw(`PUT /upload/${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`).catch(
      () => '4',
    );
    expect(tooLong).toMatch(/^(HTTP\/1\.1 )?4/);
    expect(await raw(Buffer.concat([Buffer.from('PUT /upload/a\0b HTTP/1.1\r\nHost: x\r\n\r\n')]))).toMatch(
      /^HTTP\/1\.1 4/,
    );
    expect((await readdir(test.base)).sort()).toEqual(['canary', 'store']);
    expect(await readFile(path.join(test.base, 'canary'), 'utf8')).toBe('canary');
    expect(await leftovers()).toEqual(['upload.json']);
    expect(await readdir(path.join(test.root, 'objects'))).toEqual([]);
    expect((await put(await urlOf(), 'still works')).status).toBe(200);
  });
});

describe('the service', () => {
  it('is ready while it listens, and lets an upload in flight end when it stops', async () => {
    expect(test.server.health()).toMatchObject({ healthy: true, ready: true });
    const body = randomBytes(1_000_000);
    const sending = httpRequest(await urlOf(), { method: 'PUT', headers: { 'content-length': body.length } });
    const answered = new Promise<number | undefined>((resolve) => {
      sending.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    sending.write(body.subarray(0, 500_000));
    await waitFor(async () => (await leftovers()).length === 2, { what: 'the upload to be in flight' });
    const before = performance.now();
    const stopped = test.server.stop();
    expect(test.server.health()).toMatchObject({ ready: false });
    sending.end(body.subarray(500_000));
    expect(await answered).toBe(200);
    await stopped;
    // Well before the connection, kept alive by the client, would be given up for idle (5 s).
    expect(performance.now() - before).toBeLessThan(3_000);
    const [part] = (await test.store.listParts(upload)).items;
    await test.store.complete({ ...upload, parts: [{ partNumber: 1, etag: part?.etag ?? '' }] });
    expect((await readAll(test.store, upload.key)).equals(body)).toBe(true);
  });

  it('cuts off what is still in flight when the grace is over', async () => {
    await test.close();
    await open({ stopGraceMs: 1 });
    const sending = httpRequest(await urlOf(), { method: 'PUT', headers: { 'content-length': 1_000 } });
    const failed = new Promise((resolve) => sending.once('error', resolve));
    sending.write('a');
    await waitFor(async () => (await leftovers()).length === 2, { what: 'the upload to be in flight' });
    await test.server.stop();
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
  });

  it('says where its port is taken', async () => {
    await expect(createTestStore({ port: test.server.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('logs no signature', async () => {
    const url = await presign(test.store, upload, 1);
    await put(await urlOf(), 'x');
    await put(url.replace('partNumber=1', 'partNumber=2'), 'x');
    const signature = new URL(url).searchParams.get('signature') ?? 'none';
    expect(log.text()).toContain('part refused');
    expect(log.text()).not.toContain(signature);
    expect(log.text()).not.toContain('signature=');
  });
});
