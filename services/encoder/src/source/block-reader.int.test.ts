import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { probeArgs } from '@millrace/domain';
import { ObjectStoreError } from '@millrace/objects';
import { silentLogger, systemClock } from '@millrace/platform';
import { createTestObjects, type TestObjects } from '@millrace/testing';
import { createFfprobe } from '../process/media-probe.ts';
import { BlockReader } from './block-reader.ts';
import { blockBytes } from './blocks.ts';

const key = 'videos/vid_1/original/source';
const size = 2 * blockBytes + 12_345;
const content = randomBytes(size);
let store: TestObjects;
let reader: BlockReader;

/** @param idleMs after which a read counts as stuck: far more than a busy machine needs, unless that is tested */
const createReader = (idleMs = 60_000): BlockReader =>
  new BlockReader({
    objects: store.objects,
    clock: systemClock,
    logger: silentLogger,
    cacheBytes: 2 * blockBytes,
    retryWaitsMs: [1, 1],
    idleMs,
  });

beforeEach(async () => {
  store = await createTestObjects();
  await store.objects.put(key, content);
  reader = createReader();
  await reader.listen();
});
afterEach(async () => {
  await reader.close();
  await store.close();
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** One request on a connection of its own. Rejects when the answer is cut off. */
const ask = (url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
  new Promise((resolve, reject) => {
    request(url, { method, headers, agent: false }, (response) => {
      response.toArray().then((chunks) => {
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks as Buffer[]),
        });
      }, reject);
    })
      .on('error', reject)
      .end();
  });

describe('BlockReader', () => {
  it('serves the whole source, its length, and any range', async () => {
    const source = await reader.open(key);
    expect(source.sizeBytes).toBe(size);
    const whole = await ask(source.url);
    expect([whole.status, whole.headers['content-length'], whole.headers['accept-ranges']]).toEqual([
      200,
      String(size),
      'bytes',
    ]);
    expect(whole.body.equals(content)).toBe(true);
    const head = await ask(source.url, {}, 'HEAD');
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, String(size), 0]);

    const position = fc.integer({ min: 0, max: size - 1 });
    await fc.assert(
      fc.asyncProperty(position, fc.option(fc.integer({ min: 0, max: 2 * size })), async (start, length) => {
        const end = length === null ? size - 1 : Math.min(start + length, size - 1);
        const range = `bytes=${start}-${length === null ? '' : start + length}`;
        const answer = await ask(source.url, { range });
        expect([answer.status, answer.headers['content-range']]).toEqual([
          206,
          `bytes ${start}-${end}/${size}`,
        ]);
        expect(answer.body.equals(content.subarray(start, end + 1))).toBe(true);
      }),
      {
        numRuns: 20,
        examples: [
          [blockBytes - 1, 1],
          [blockBytes, null],
          [size - 1, null],
        ],
      },
    );
  });

  it('refuses ranges past the end, other paths, other methods, and a closed source', async () => {
    const source = await reader.open(key);
    const past = await ask(source.url, { range: `bytes=${size}-` });
    expect([past.status, past.headers['content-range']]).toEqual([416, `bytes */${size}`]);
    const base = new URL(source.url).origin;
    for (const path of ['/', '/source', `/${key}`, `${new URL(source.url).pathname}/../x`]) {
      expect((await ask(base + path)).status).toBe(404);
    }
    expect((await ask(source.url, {}, 'PUT')).status).toBe(404);
    const other = await reader.open(key);
    source.close();
    expect((await ask(source.url)).status).toBe(404);
    expect((await ask(other.url, { range: 'bytes=0-9' })).status).toBe(206);
  });

  it('fetches each block once for several readers, and reads ahead', async () => {
    const fetched: string[] = [];
    store.interfere = (method) => void fetched.push(method);
    const source = await reader.open(key);
    await Promise.all([
      ask(source.url, { range: 'bytes=0-99' }),
      ask(source.url, { range: 'bytes=50-9999' }),
    ]);
    // The block asked for and the one after it.
    expect(fetched.filter((method) => method === 'get').length).toBe(2);
    await ask(source.url, { range: `bytes=${blockBytes}-${blockBytes + 9}` });
    expect(fetched.filter((method) => method === 'get').length).toBe(3);
  });

  it('hides a short outage of the store', async () => {
    let failures = 2;
    store.interfere = (method) => {
      if (method === 'get' && failures-- > 0) throw new ObjectStoreError('unavailable', 'down');
    };
    const source = await reader.open(key);
    expect((await ask(source.url, { range: 'bytes=5-9' })).body.equals(content.subarray(5, 10))).toBe(true);
    expect(source.failure()).toBeUndefined();
  });

  it('cuts the answer off and remembers why when the store stays away', async () => {
    const source = await reader.open(key);
    store.interfere = (method) => {
      if (method === 'get') throw new ObjectStoreError('unavailable', 'down for long');
    };
    await expect(ask(source.url)).rejects.toThrow();
    expect(source.failure()?.message).toBe('down for long');
    // The store is back: the next read works, the memory stays.
    store.interfere = null;
    expect((await ask(source.url, { range: 'bytes=0-3' })).status).toBe(206);
    expect(source.failure()).toBeDefined();
  });

  it('does not retry an object that is gone or is another now', async () => {
    const source = await reader.open(key);
    await store.objects.deleteMany([key]);
    await expect(ask(source.url)).rejects.toThrow();
    expect(source.failure()).toMatchObject({ code: 'no_such_key' });
    await expect(reader.open('videos/vid_1/original/none')).rejects.toMatchObject({ code: 'no_such_key' });
  });

  it('drops a fetch when its source closes', async () => {
    const source = await reader.open(key);
    const reached = new Promise<void>((resolve) => {
      store.interfere = () =>
        new Promise((_resolve, reject) => {
          resolve();
          setImmediate(() => reject(new ObjectStoreError('unavailable', 'down')));
        });
    });
    const answer = ask(source.url);
    await reached;
    source.close();
    await expect(answer).rejects.toThrow();
    expect(source.failure()).toBeUndefined();
  });

  it('tries again when the store falls silent in the middle', async () => {
    await reader.close();
    reader = createReader(150);
    await reader.listen();
    const source = await reader.open(key);
    const { get } = store.objects;
    let silent = 2;
    store.objects.get = async (...args) => {
      if (silent-- <= 0) return get(...args);
      const body = await get(...args);
      body.stream.destroy();
      // Some bytes, then nothing more, and no end.
      const stream = new Readable({ read: () => undefined });
      stream.push(Buffer.alloc(1_000));
      return { ...body, stream };
    };
    expect((await ask(source.url, { range: 'bytes=5-9' })).body.equals(content.subarray(5, 10))).toBe(true);
    expect(source.failure()).toBeUndefined();
  });

  it('lets no file talk ffprobe into another request or file', async () => {
    const asked: string[] = [];
    const canary = createServer((incoming, response) => {
      asked.push(incoming.url ?? '');
      response.end();
    });
    canary.listen(0, '127.0.0.1');
    await once(canary, 'listening');
    const { port } = canary.address() as AddressInfo;
    const target = `http://127.0.0.1:${port}/canary`;
    const disguises = [
      `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${target}.ts\n#EXT-X-ENDLIST\n`,
      '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n',
      `ffconcat version 1.0\nfile '${target}.mp4'\n`,
      `<?xml version="1.0"?><MPD><Period><BaseURL>${target}</BaseURL></Period></MPD>`,
    ];
    const outputFolder = await mkdtemp(join(tmpdir(), 'millrace-disguise-'));
    for (const [index, text] of disguises.entries()) {
      const name = `videos/vid_1/disguise-${index}/source`;
      await store.objects.put(name, Buffer.from(text));
      const source = await reader.open(name);
      let seen = '';
      const run = createFfprobe().run(
        probeArgs(source.url),
        {
          wallMs: 10_000,
          stallMs: 10_000,
          memoryBytes: 2 ** 30,
          outputBytes: 2 ** 20,
          outputFolder,
        },
        { onText: (piece) => (seen += piece), signal: new AbortController().signal },
      );
      await expect(run).rejects.toMatchObject({ end: 'exit' });
      expect(seen).not.toContain('root:');
    }
    canary.close();
    await rm(outputFolder, { recursive: true });
    expect(asked).toEqual([]);
  });
});
