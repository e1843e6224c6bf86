import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import { sample, videoState } from './testing/sample.ts';

/** A viewer who has played, kept every address and validator, and comes back when nothing may play any more. */

let harness: CdnHarness;
beforeEach(async () => {
  harness = await startCdn();
  await harness.beat();
});
afterEach(closeCdns);

const paths = [
  'master.m3u8',
  '720p/index.m3u8',
  '720p/iframes.m3u8',
  '720p/init.mp4',
  '720p/seg-0.m4s',
  '720p/seg-3.m4s',
  'audio/seg-0.m4s',
  'storyboard.vtt',
  'poster.jpg',
];

/** Plays all but one segment, which stays cold; keeps the validators. */
async function play(token: string): Promise<Map<string, string>> {
  const tags = new Map<string, string>();
  for (const path of paths.filter((each) => each !== '720p/seg-3.m4s')) {
    const { status, headers } = await harness.ask(path, { token });
    expect([path, status]).toEqual([path, 200]);
    if (headers.etag !== undefined) tags.set(path, headers.etag);
  }
  return tags;
}

/** Asks for everything again as a browser may: plainly, for a part, with a validator, for the head alone. */
async function answersTo(token: string, tags: Map<string, string>): Promise<Set<string>> {
  const codes = new Set<string>();
  for (const path of paths) {
    for (const headers of [
      {},
      { Range: 'bytes=0-' },
      { 'If-None-Match': tags.get(path) ?? '*' },
      { 'Cache-Control': 'only-if-cached' },
    ]) {
      const { status, headers: answer, body } = await harness.ask(path, { token, headers });
      expect(answer['content-type']).toBe('application/problem+json');
      expect(body.length).toBeLessThan(1_000);
      codes.add(`${status} ${String(answer['x-svc-error'])} ${String(answer['cache-control'])}`);
    }
    const head = await harness.ask(path, { token, method: 'HEAD' });
    codes.add(
      `${head.status} ${String(head.headers['x-svc-error'])} ${String(head.headers['cache-control'])}`,
    );
  }
  return codes;
}

describe('what was played before is refused, in memory or not', () => {
  it('when the token has expired', async () => {
    const expiresAt = new Date(harness.clock.now().getTime() + 60_000);
    const token = harness.token({ expiresAt });
    const tags = await play(token);
    await harness.clock.advance(60_000);
    await harness.beat();
    expect(await answersTo(token, tags)).toEqual(new Set(['403 token_expired no-store']));
    await harness.clock.advance(60_000);
    await harness.beat();
    expect(await answersTo(token, tags)).toEqual(new Set(['403 token_expired no-store']));
    expect((await harness.ask('720p/seg-0.m4s')).status).toBe(200);
  });

  it.each(['held', 'deleted'] as const)('when the video is %s, at once by the bus', async (status) => {
    const token = harness.token();
    const tags = await play(token);
    await harness.publish({ v: 1, kind: 'video', state: videoState({ version: 6, status }) });
    await harness.beat();
    expect(await answersTo(token, tags)).toEqual(new Set(['403 video_unavailable no-store']));
  });

  it.each(['held', 'deleted'] as const)(
    'when the video is %s and the bus says nothing, within a minute',
    async (status) => {
      const token = harness.token();
      const tags = await play(token);
      harness.record.videos.set(sample.videoId, videoState({ version: 6, status }));
      await harness.clock.advance(59_000);
      await waitFor(async () => (await harness.ask('poster.jpg', { token })).status === 403, {
        what: 'the record to be read',
      });
      expect(await answersTo(token, tags)).toEqual(new Set(['403 video_unavailable no-store']));
    },
  );
});
