import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import { pattern, sample, sampleIndex, videoState } from './testing/sample.ts';

const other = 'vid_0000000000000000000002';

let harness: CdnHarness;
beforeAll(async () => {
  harness = await startCdn();
  harness.record.videos.set(other, videoState({ videoId: other, indexKey: 'encodes/two/index.json' }));
  await harness.store.objects.put(
    'encodes/two/index.json',
    Buffer.from(JSON.stringify({ ...sampleIndex, videoId: other })),
  );
  await harness.beat();
});
afterAll(closeCdns);

/** Sends bytes as they are, as no client library would, and reads until the server closes. */
async function raw(target: string, headers = ''): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(harness.cdn.listening);
  const socket = connect(Number(port), hostname);
  socket.write(
    Buffer.from(
      `GET ${target} HTTP/1.1\r\nHost: cdn\r\nOrigin: https://${sample.domain}\r\nConnection: close\r\n${headers}\r\n`,
      'latin1',
    ),
  );
  const text = Buffer.concat((await socket.toArray()) as Buffer[]).toString('latin1');
  return { status: Number(text.split(' ')[1]), text };
}

describe('paths that try to be another video', () => {
  it.each([
    '/v/A/../B/720p/seg-0.m4s',
    '/v/A/%2e%2e/B/720p/seg-0.m4s',
    '/v/A/%2E%2E/B/720p/seg-0.m4s',
    '/v/A/%252e%252e/B/720p/seg-0.m4s',
    '/v/A/..%2fB/720p/seg-0.m4s',
    '/v/A/..%2FB/720p/seg-0.m4s',
    '/v/A/..%5cB/720p/seg-0.m4s',
    '/v/A//../B/720p/seg-0.m4s',
    '/v/A/..\\B/720p/seg-0.m4s',
    '/v/A/;/../B/720p/seg-0.m4s',
    '/v/A;/../B/720p/seg-0.m4s',
    '/v/A/..;/B/720p/seg-0.m4s',
    '//v/B/720p/seg-0.m4s',
    '/v//B/720p/seg-0.m4s',
    '/v/./B/720p/seg-0.m4s',
    '/./v/B/720p/seg-0.m4s',
    '/v/B/720p//seg-0.m4s',
    '/v/B/720p/./seg-0.m4s',
    '/v/B/720p/seg-0.m4s/',
    '/v/B/720p/seg-00.m4s',
    '/v/B/720p/seg-0.m4s%00',
    '/v/B/720p/seg%2d0.m4s',
    '/v/%42/720p/seg-0.m4s',
    '/V/B/720p/seg-0.m4s',
    '/v/B/720P/seg-0.m4s',
    'http://cdn/v/B/720p/seg-0.m4s',
    '*',
    '/v/B/../../etc/passwd',
    '/v/B/poster.jpg/../720p/seg-0.m4s',
    '/v/B/__proto__',
    '/v/B/constructor/index.m3u8',
    '/v/B/audio-1/index.m3u8',
    '/v/B/audio/iframes.m3u8',
    '/v/B/master.m3u8#',
  ])('%s is 404 [CDN-210]', async (path) => {
    const target = path.replaceAll('A', sample.videoId).replaceAll('B', other);
    const { status, text } = await raw(`${target}?token=${harness.token()}`);
    expect(status).toBe(404);
    expect(text).toContain('X-Svc-Error: not_found');
  });

  it.each(['master.m3u8', '720p/seg-0.m4s', 'poster.jpg'])(
    "a token is none for another video's %s [CDN-323]",
    async (path) => {
      const { status, text } = await raw(`/v/${other}/${path}?token=${harness.token()}`);
      expect(status).toBe(403);
      expect(text).toContain('X-Svc-Error: token_invalid');
      // Its own token opens it: what was refused is there.
      const own = await raw(`/v/${other}/${path}?token=${harness.token({ videoId: other })}`);
      expect(own.status).toBe(200);
    },
  );

  it('answers what is no HTTP with 400 and lives on', async () => {
    for (const target of [
      '/v/a b/master.m3u8',
      '/v/\0',
      '/v/\xff/master.m3u8',
      '\\v\\a',
      'v/a/master.m3u8',
    ]) {
      expect((await raw(target)).status).toBe(400);
    }
    const tooLong = await raw('/', `X-Long: ${'x'.repeat(20_000)}\r\n`);
    expect(tooLong.status).toBe(431);
    for (const header of ['X-Svc-Error: invalid_request', 'Cache-Control: no-store', 'Vary: Origin']) {
      expect(tooLong.text).toContain(`\r\n${header}\r\n`);
    }
    expect((await raw(`/v/${sample.videoId}/master.m3u8?token=${'a'.repeat(9_000)}`)).text).toContain(
      'token_invalid',
    );
    expect((await harness.ask('master.m3u8')).status).toBe(200);
  });

  it('takes two Origin headers for none that is right', async () => {
    const headers = 'Origin: https://evil.example\r\n';
    const { text } = await raw(`/v/${sample.videoId}/master.m3u8?token=${harness.token()}`, headers);
    expect(text).toContain('X-Svc-Error: domain_mismatch');
  });
});

describe('viewers that drop their connections', () => {
  /** Opens one segment and goes away after its first bytes, or before there are any. */
  async function drop(path: string): Promise<void> {
    const { hostname, port } = new URL(harness.cdn.listening);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: cdn\r\nOrigin: https://${sample.domain}\r\n\r\n`);
    await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    socket.destroy();
    await once(socket, 'close').catch(() => undefined);
  }

  it('500 at once, five times, leave no read, no answer and no memory behind', async () => {
    const own = await startCdn({ CDN_BLOCK_CACHE_BYTES: '1048576' });
    const streams = new Set<object>();
    const get = own.store.objects.get.bind(own.store.objects);
    own.store.objects.get = async (...args) => {
      const body = await get(...args);
      streams.add(body.stream);
      body.stream.once('close', () => streams.delete(body.stream));
      return body;
    };
    const previous = harness;
    harness = own;
    try {
      const token = own.token();
      for (let round = 0; round < 5; round++) {
        const paths = Array.from(
          { length: 500 },
          (_, n) => `/v/${sample.videoId}/${n % 2 === 0 ? '720p' : '360p'}/seg-${n % 4}.m4s?token=${token}`,
        );
        await Promise.all(paths.map(drop));
      }
      await waitFor(() => streams.size === 0, { what: 'all reads of the store to be closed' });
      await waitFor(async () => (await own.metric('millrace_cdn_unsent_bytes')) === 0, {
        what: 'unsent bytes',
      });
      expect(await own.metric('millrace_cdn_block_cache_bytes')).toBeLessThanOrEqual(1_048_576);
      expect((await own.ask('720p/seg-0.m4s')).status).toBe(200);
    } finally {
      harness = previous;
    }
  });

  it('with answers over the bound in their hands, the next is refused for a while', async () => {
    const own = await startCdn({ CDN_SEND_BYTES: '1048576' });
    // An answer that is larger than what the kernel takes for a viewer who reads nothing.
    const bytes = 900_000;
    await own.store.objects.put('encodes/big.jpg', pattern(1, bytes));
    const index = {
      ...sampleIndex,
      files: { 'poster.jpg': { key: 'encodes/big.jpg', bytes, contentType: 'image/jpeg' } },
    };
    await own.store.objects.put('encodes/big.json', Buffer.from(JSON.stringify(index)));
    own.record.videos.set(sample.videoId, videoState({ indexKey: 'encodes/big.json' }));
    const answers = await Promise.all(Array.from({ length: 8 }, () => own.ask('poster.jpg')));
    const codes = answers.map(({ headers }) => headers['x-svc-error'] ?? 'served');
    expect(new Set(codes)).toEqual(new Set(['served', 'service_unavailable']));
    await waitFor(async () => (await own.metric('millrace_cdn_unsent_bytes')) === 0);
    expect((await own.ask('poster.jpg')).body.length).toBe(bytes);
  });
});
