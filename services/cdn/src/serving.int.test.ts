import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ObjectStoreError } from '@millrace/objects';
import { type Answer, ask, type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import {
  pattern,
  sample,
  sampleIndex,
  segmentBytes,
  storyboard,
  trackBytes,
  videoState,
} from './testing/sample.ts';

let harness: CdnHarness;
beforeAll(async () => {
  harness = await startCdn();
  await harness.beat();
});
afterAll(closeCdns);

/** Every address in a playlist: lines that are links, and `URI` attributes. */
const linksIn = (playlist: string): string[] => [
  ...playlist.split('\n').filter((line) => line !== '' && !line.startsWith('#')),
  ...Array.from(playlist.matchAll(/URI="([^"]+)"/g), ([, uri]) => uri ?? ''),
];

describe('a walk from the master playlist', () => {
  it('reaches every file with the same token and nothing without it [SVC-002, CDN-202, UPL-214]', async () => {
    const token = harness.token();
    const seen = new Map<string, Answer>();
    const walk = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      const answer = await ask(harness.cdn.listening, path);
      expect([path, answer.status]).toEqual([path, 200]);
      seen.set(path, answer);
      const bare = await ask(harness.cdn.listening, path.replace(/\?.*/, ''));
      expect(bare.headers['x-svc-error']).toBe('token_missing');
      if (!path.includes('.m3u8')) return;
      for (const link of linksIn(answer.body.toString())) {
        expect(link.endsWith(`?token=${token}`)).toBe(true);
        const url = new URL(link, `http://x${path}`);
        await walk(url.pathname + url.search);
      }
    };
    await walk(`/v/${sample.videoId}/master.m3u8?token=${token}`);
    const files = [...seen.keys()].map((path) => path.replace(/^\/v\/[^/]+\/|\?.*/g, '')).sort();
    const media = ['init.mp4', 'seg-0.m4s', 'seg-1.m4s', 'seg-2.m4s', 'seg-3.m4s'];
    expect(files).toEqual(
      [
        'master.m3u8',
        ...['360p', '720p'].flatMap((quality) =>
          ['index.m3u8', 'iframes.m3u8', ...media].map((file) => `${quality}/${file}`),
        ),
        ...['index.m3u8', ...media].map((file) => `audio/${file}`),
      ].sort(),
    );
    const body = (path: string) => seen.get(`/v/${sample.videoId}/${path}?token=${token}`)?.body;
    expect(body('720p/seg-3.m4s')?.equals(segmentBytes('720p', 3))).toBe(true);
    expect(body('audio/init.mp4')?.equals(trackBytes('audio').subarray(0, sample.initBytes))).toBe(true);
  });

  it('puts the token on the pictures of the storyboard [CDN-202, CDN-209]', async () => {
    const token = harness.token();
    const answer = await harness.ask('storyboard.vtt', { token });
    expect(answer.body.toString()).toBe(storyboard.replace('.jpg#', `.jpg?token=${token}#`));
    expect(answer.headers['content-type']).toBe('text/vtt');
    expect(Number(answer.headers['content-length'])).toBe(answer.body.length);
    const again = await harness.ask('storyboard.vtt', { token });
    expect(again.body).toEqual(answer.body);
  });
});

describe('headers', () => {
  it.each([
    ['master.m3u8', 'application/vnd.apple.mpegurl', 'private, max-age=30'],
    ['720p/index.m3u8', 'application/vnd.apple.mpegurl', 'private, max-age=30'],
    ['720p/seg-0.m4s', 'video/mp4', 'private, max-age=86400, immutable'],
    ['720p/init.mp4', 'video/mp4', 'private, max-age=86400, immutable'],
    ['audio/seg-0.m4s', 'audio/mp4', 'private, max-age=86400, immutable'],
    ['poster.jpg', 'image/jpeg', 'private, max-age=30'],
  ])('of %s [CDN-307, CDN-308, CDN-338]', async (path, type, cacheControl) => {
    const { headers, body } = await harness.ask(path);
    expect(headers).toMatchObject({
      'content-type': type,
      'cache-control': cacheControl,
      'content-length': String(body.length),
      'accept-ranges': 'bytes',
      vary: 'Origin',
      'access-control-allow-origin': `https://${sample.domain}`,
      'access-control-expose-headers': 'X-Svc-Error, Content-Range, Content-Length, Retry-After',
    });
    expect(headers['x-request-id']).toMatch(/^req_[A-Za-z0-9]{22}$/);
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('HEAD has those of GET and no body [CDN-212]', async () => {
    for (const path of [
      'master.m3u8',
      '720p/index.m3u8',
      '720p/seg-1.m4s',
      '1080p/seg-1.m4s',
      'poster.jpg',
    ]) {
      const token = harness.token();
      const [get, head] = [
        await harness.ask(path, { token }),
        await harness.ask(path, { token, method: 'HEAD' }),
      ];
      expect(head.body.length).toBe(0);
      const comparable = ({ status, headers }: Answer) => {
        return { status, ...headers, date: undefined, 'x-request-id': undefined };
      };
      expect(comparable(head)).toEqual(comparable(get));
    }
  });

  it('HEAD knows them without reading the file', async () => {
    const own = await startCdn();
    await own.ask('master.m3u8');
    own.store.interfere = () => {
      throw new Error('read');
    };
    const head = await own.ask('720p/seg-0.m4s', { method: 'HEAD' });
    expect([head.status, head.headers['content-length']]).toEqual([200, String(sample.segmentBytes)]);
  });

  it('names the request, a new one each time, and a refused one too [CNV-028]', async () => {
    const asked = ['master.m3u8', 'master.m3u8', 'poster.jpg', 'nothing'].map((path) => harness.ask(path));
    const ids = (await Promise.all(asked)).map(({ headers }) => String(headers['x-request-id']));
    expect(ids.filter((id) => /^req_[A-Za-z0-9]{22}$/.test(id))).toHaveLength(4);
    expect(new Set(ids).size).toBe(4);
  });
});

describe('CORS', () => {
  const origins = ['https://shop.example.com', 'https://other.example', null, 'https://shop.example.com'];
  it.each<[string, string, Record<string, string>]>([
    ['a segment', '720p/seg-0.m4s', {}],
    ['a refusal', '1080p/seg-0.m4s', {}],
    ['a missing file', '720p/seg-99.m4s', {}],
    ['a path not served', '720p/nothing', {}],
    ['a range outside', '720p/seg-0.m4s', { Range: 'bytes=999999-' }],
  ])('on %s echoes each request its own origin [CDN-336, CDN-337]', async (_title, path, more) => {
    for (const origin of origins) {
      // The Referer keeps a request without Origin within the checks.
      const headers = { Referer: 'https://shop.example.com/', ...more };
      const answer = await harness.ask(path, { origin, headers });
      expect(answer.headers['access-control-allow-origin']).toBe(origin ?? undefined);
      expect(answer.headers.vary).toBe('Origin');
    }
  });

  it('answers a preflight without a token, on any path', async () => {
    for (const path of ['720p/seg-0.m4s', '/v/none', '/']) {
      const headers = { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'range' };
      const answer = await harness.ask(path, { method: 'OPTIONS', token: null, headers });
      expect(answer.status).toBe(204);
      expect(answer.body.length).toBe(0);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': `https://${sample.domain}`,
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
        'access-control-allow-headers': 'Range, If-Range, If-None-Match',
        vary: 'Origin',
      });
    }
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND'])('%s is 404', async (method) => {
    const answer = await harness.ask('master.m3u8', { method });
    expect([answer.status, answer.headers['x-svc-error']]).toEqual([404, 'not_found']);
  });
});

describe('ranges', () => {
  const size = sample.segmentBytes;
  const whole = segmentBytes('720p', 2);
  it.each<[string, number, number, number]>([
    ['bytes=0-', 206, 0, size - 1],
    ['bytes=0-1', 206, 0, 1],
    [`bytes=0-${size - 1}`, 206, 0, size - 1],
    ['bytes=100-199', 206, 100, 199],
    [`bytes=100-${size * 9}`, 206, 100, size - 1],
    ['bytes=-10', 206, size - 10, size - 1],
    [`bytes=-${size * 2}`, 206, 0, size - 1],
    ['bytes=0-1,5-6', 200, 0, size - 1],
    ['bytes=5-4', 200, 0, size - 1],
    ['items=0-1', 200, 0, size - 1],
    ['bytes=x', 200, 0, size - 1],
  ])('%s: %s with bytes %s to %s [CDN-213]', async (range, status, start, end) => {
    const answer = await harness.ask('720p/seg-2.m4s', { headers: { Range: range } });
    expect(answer.status).toBe(status);
    expect(answer.headers['content-range']).toBe(
      status === 206 ? `bytes ${start}-${end}/${size}` : undefined,
    );
    expect(answer.headers['content-length']).toBe(String(end - start + 1));
    expect(answer.body.equals(whole.subarray(start, end + 1))).toBe(true);
  });

  it.each([`bytes=${size}-`, 'bytes=-0', 'bytes=99999999999999999999999-'])(
    '%s is 416 [ERR-102]',
    async (range) => {
      const answer = await harness.ask('720p/seg-2.m4s', { headers: { Range: range } });
      expect(answer.status).toBe(416);
      expect(answer.headers).toMatchObject({
        'content-range': `bytes */${size}`,
        'x-svc-error': 'range_not_satisfiable',
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
      });
    },
  );

  it('works on playlists, as joined with the token', async () => {
    const token = harness.token();
    const all = await harness.ask('720p/index.m3u8', { token });
    const part = await harness.ask('720p/index.m3u8', { token, headers: { Range: 'bytes=20-419' } });
    expect(part.status).toBe(206);
    expect(part.body.equals(all.body.subarray(20, 420))).toBe(true);
  });

  it('keeps to If-Range and If-None-Match', async () => {
    const { headers } = await harness.ask('720p/seg-2.m4s');
    const etag = headers.etag ?? '';
    expect(etag).toMatch(/^"[\w-]+"$/);
    const status = async (more: Record<string, string>) =>
      (await harness.ask('720p/seg-2.m4s', { headers: more })).status;
    expect(await status({ Range: 'bytes=0-1', 'If-Range': etag })).toBe(206);
    expect(await status({ Range: 'bytes=0-1', 'If-Range': '"other"' })).toBe(200);
    expect(await status({ Range: 'bytes=0-1', 'If-Range': new Date().toUTCString() })).toBe(200);
    expect(await status({ 'If-None-Match': `"other", W/${etag}` })).toBe(304);
    expect(await status({ 'If-None-Match': '"other"' })).toBe(200);
    const other = await harness.ask('720p/seg-1.m4s');
    expect(other.headers.etag).not.toBe(etag);
  });

  it('refuses before it looks at conditions', async () => {
    const { headers } = await harness.ask('720p/seg-2.m4s');
    const more = { 'If-None-Match': headers.etag ?? '', Range: 'bytes=0-1' };
    const answer = await harness.ask('720p/seg-2.m4s', { origin: 'https://other.example', headers: more });
    expect(answer.headers['x-svc-error']).toBe('domain_mismatch');
  });
});

describe('what is not there', () => {
  it.each(['720p/seg-4.m4s', 'audio-2/index.m3u8', 'captions/en/index.m3u8', 'storyboard-7.jpg'])(
    '%s is 404 after all checks [CDN-211]',
    async (path) => {
      const answer = await harness.ask(path);
      expect([answer.status, answer.headers['x-svc-error']]).toEqual([404, 'not_found']);
      const unchecked = await harness.ask(path, { token: null });
      expect(unchecked.headers['x-svc-error']).toBe('token_missing');
    },
  );

  it('is 404 too for an object that the store has lost [CDN-211]', async () => {
    const own = await startCdn();
    await own.store.objects.deleteMany(['encodes/one/720p.mp4']);
    expect((await own.ask('720p/seg-0.m4s')).headers['x-svc-error']).toBe('not_found');
  });

  it.each([
    [
      'the store is away',
      new ObjectStoreError('unavailable', 'nobody at 10.0.0.1'),
      503,
      'service_unavailable',
    ],
    ['something of ours fails', new TypeError('nobody at 10.0.0.1'), 500, 'internal_error'],
  ])('while %s it says so, without saying more', async (_title, error, status, code) => {
    const own = await startCdn();
    own.store.interfere = () => {
      throw error;
    };
    const broken = await own.ask('360p/seg-0.m4s');
    expect([broken.status, broken.headers['x-svc-error']]).toEqual([status, code]);
    expect(broken.headers['retry-after']).toBe(status === 503 ? '5' : undefined);
    expect(broken.body.toString()).not.toContain('10.0.0.1');
    own.store.interfere = null;
    expect((await own.ask('360p/seg-0.m4s')).body.equals(segmentBytes('360p', 0))).toBe(true);
  });

  it('serves the poster [CDN-208]', async () => {
    const answer = await harness.ask('poster.jpg');
    expect(answer.body.equals(pattern(9, sample.posterBytes))).toBe(true);
  });
});

describe('logs and metrics', () => {
  it('count by route and code and never show a token', async () => {
    const token = harness.token();
    await harness.ask('720p/seg-0.m4s', { token });
    await harness.ask('1080p/seg-0.m4s', { token });
    const text = await harness.metrics.render();
    expect(text).toMatch(/millrace_cdn_requests_total\{route="segment",status="200",code=""/);
    expect(text).toMatch(/code="plan_limit_reached"/);
    const secretPart = token.split('.')[1] ?? token;
    expect(text + harness.log.text()).not.toContain(secretPart);
  });
});

describe('a file of no bytes', () => {
  it('is served as such', async () => {
    const own = await startCdn();
    const file = { key: 'encodes/one/empty.vtt', bytes: 0, contentType: 'text/vtt' };
    await own.store.objects.put(file.key, Buffer.alloc(0));
    const files = { 'poster.jpg': file, 'storyboard.vtt': file };
    await own.store.objects.put('encodes/empty.json', Buffer.from(JSON.stringify({ ...sampleIndex, files })));
    own.record.videos.set(sample.videoId, videoState({ indexKey: 'encodes/empty.json' }));
    for (const path of Object.keys(files)) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers, body } = await own.ask(path, { method });
        expect([status, headers['content-length'], body.length]).toEqual([200, '0', 0]);
      }
      const ranged = await own.ask(path, { headers: { Range: 'bytes=0-' } });
      expect([ranged.status, ranged.headers['content-range']]).toEqual([416, 'bytes */0']);
    }
  });
});
