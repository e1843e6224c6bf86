import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parseKeySet, verifyPlaybackToken } from '@millrace/domain';
import { createMetrics, type Metrics, systemClock } from '@millrace/platform';
import { captureLogger, settingProblems } from '@millrace/testing';
import { z } from 'zod';
import { probeLoop } from './probe.ts';
import { checkProbeSettings, probeOf, probeSettings } from './settings.ts';

const secret = `k1:${'s'.repeat(32)}`;
const keys = parseKeySet(secret);
const canaries = { playing: 'vid_1', held: 'vid_2' };

/** A CDN: of `vid_1` playlists and a segment, of `vid_2` a refusal, unless the test answers otherwise. */
let answer: (path: string) => [status: number, body: string, code?: string];
let asked: { path: string; origin: string | undefined; token: string | null }[];
let server: Server;
beforeEach(async () => {
  asked = [];
  answer = (path) => {
    if (path.startsWith('/v/vid_2/')) return [403, '{}', 'video_unavailable'];
    if (path.endsWith('master.m3u8'))
      return [200, '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n360p/index.m3u8?token=x\n'];
    if (path.endsWith('index.m3u8'))
      return [200, '#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:6,\nseg-0.m4s?token=x\n'];
    return [200, 'bytes'];
  };
  server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { pathname: path, searchParams } = new URL(request.url ?? '', 'http://cdn');
    asked.push({ path, origin: request.headers.origin, token: searchParams.get('token') });
    const [status, body, code] = answer(path);
    response.writeHead(status, {
      Connection: 'close',
      ...(code === undefined ? {} : { 'X-Svc-Error': code }),
    });
    response.end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  server.close();
  await once(server, 'close');
});

async function run(): Promise<{ metrics: Metrics; log: string }> {
  const metrics = createMetrics({ service: 'reconciler' });
  const log = captureLogger();
  const cdnUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const deps = { clock: systemClock, logger: log.logger, metrics };
  await probeLoop({ canaries, domain: 'canary.example', cdnUrl, keys }, deps).run(
    new AbortController().signal,
  );
  return { metrics, log: log.text() };
}
const outcomes = async (metrics: Metrics): Promise<string[]> =>
  (await metrics.render())
    .split('\n')
    .filter((line) => /^millrace_probe_total.* 1$/.test(line))
    .map((line) => line.replace(/^.*canary="(\w+)",outcome="(\w+)".*$/, '$1 $2'))
    .sort();

describe('the synthetic viewer', () => {
  it('plays what plays down to its bytes, and is refused what is held', async () => {
    const { metrics, log } = await run();
    expect(await outcomes(metrics)).toEqual(['held ok', 'playing ok']);
    const paths = asked.map(({ path }) => path).sort();
    expect(paths).toEqual([
      ...[
        '/v/vid_1/360p/index.m3u8',
        '/v/vid_1/360p/seg-0.m4s',
        '/v/vid_1/master.m3u8',
        '/v/vid_2/master.m3u8',
      ],
    ]);
    expect(new Set(asked.map(({ origin }) => origin))).toEqual(new Set(['https://canary.example']));
    const token = asked.find(({ path }) => path === '/v/vid_2/master.m3u8')?.token ?? '';
    expect(verifyPlaybackToken(token, keys)).toMatchObject({
      ...{ kind: 'preview', videoId: 'vid_2', domain: 'canary.example' },
    });
    expect(log).toBe('');
  });

  it.each([
    ['a held video that plays', 'held wrong', (): [number, string] => [200, '#EXTM3U\nseg-0.m4s\n']],
    [
      'a video that is refused',
      'playing wrong',
      (): [number, string, string] => [403, '{}', 'token_expired'],
    ],
    ['a playlist without an entry', 'playing wrong', (): [number, string] => [200, '#EXTM3U\n']],
    [
      'a CDN that cannot decide',
      'held wrong',
      (): [number, string, string] => [503, '', 'state_unavailable'],
    ],
  ])('counts %s, and says so', async (_, outcome, other) => {
    answer = other;
    const { metrics, log } = await run();
    expect(await outcomes(metrics)).toContain(outcome);
    expect(log).toContain('found what must not be');
  });

  it('counts it apart when there is no answer', async () => {
    answer = () => {
      server.closeAllConnections();
      return [200, ''];
    };
    expect(await outcomes((await run()).metrics)).toEqual(['held failed', 'playing failed']);
  });
});

describe('its settings', () => {
  const schema = z.object(probeSettings).superRefine(checkProbeSettings);
  const whole = {
    ...{ PROBE_VIDEO_ID: 'vid_1', PROBE_HELD_VIDEO_ID: 'vid_2', PROBE_DOMAIN: 'canary.example' },
    ...{ CDN_URL: 'https://cdn.example/', PLAYBACK_KEYS: secret },
  };

  it('are off together, and needed together', () => {
    expect(settingProblems(schema, {})).toEqual([]);
    expect(probeOf(schema.parse({ CDN_URL: whole.CDN_URL }))).toBeNull();
    expect(settingProblems(schema, { PROBE_VIDEO_ID: 'vid_1' })).toEqual([
      ...['CDN_URL', 'PLAYBACK_KEYS', 'PROBE_DOMAIN', 'PROBE_HELD_VIDEO_ID'],
    ]);
    expect(probeOf(schema.parse(whole))).toMatchObject({ canaries, cdnUrl: 'https://cdn.example' });
  });
});
