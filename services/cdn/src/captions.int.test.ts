import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type CaptionsPlaybackState } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { ask, type CdnHarness, closeCdns, startCdn } from './testing/harness.ts';
import { sample, videoState } from './testing/sample.ts';

/** A line of it looks like a picture, another like a link. */
const text = 'WEBVTT\n\n00:00.000 --> 00:02.000\nphoto.jpg\nseg-0.m4s\n';

let harness: CdnHarness;
let version = 10;
beforeEach(async () => {
  harness = await startCdn();
  await show(await stored('en', 'English', text), await stored('pt-BR', 'português (Brasil)', `${text}x`));
  await harness.beat();
});
afterAll(closeCdns);

/** Puts a file of captions into the store. */
async function stored(language: string, name: string, file: string): Promise<CaptionsPlaybackState> {
  const key = `captions/${++version}/${language}.vtt`;
  await harness.store.objects.put(key, Buffer.from(file));
  return { language, name, key, bytes: Buffer.byteLength(file) };
}

/** The record has these captions from now on, and says so. */
async function show(...captions: CaptionsPlaybackState[]): Promise<void> {
  const state = videoState({ version: ++version, captions });
  harness.record.videos.set(sample.videoId, state);
  await harness.publish({ v: 1, kind: 'video', state });
}

const master = async (token: string): Promise<string> =>
  (await harness.ask('master.m3u8', { token })).body.toString();

describe('captions on the CDN', () => {
  it('are offered in the master playlist, and play from there with its token [CDN-207, CAP-206, CDN-202]', async () => {
    const token = harness.token();
    const links = [...(await master(token)).matchAll(/TYPE=SUBTITLES.*LANGUAGE="([^"]+)".*URI="([^"]+)"/g)];
    expect(links.map(([, language]) => language)).toEqual(['en', 'pt-BR']);
    for (const [, language, link = ''] of links) {
      expect(link).toBe(`captions/${language ?? ''}/index.m3u8?token=${token}`);
      const playlist = await ask(harness.cdn.listening, `/v/${sample.videoId}/${link}`);
      expect(playlist.body.toString()).toContain(`\n#EXTINF:24.024000,\nseg-0.vtt?token=${token}\n`);
      const file = await harness.ask(`captions/${language ?? ''}/seg-0.vtt`, { token });
      expect(file.body.toString()).toBe(language === 'en' ? text : `${text}x`);
    }
  });

  it.each<[string, string]>([
    ['captions/en/index.m3u8', 'application/vnd.apple.mpegurl'],
    ['captions/en/seg-0.vtt', 'text/vtt'],
  ])('%s is kept for 30 seconds, since it may be replaced, and read by its own page', async (path, type) => {
    const { status, headers, body } = await harness.ask(path);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': type,
      'cache-control': 'private, max-age=30',
      'content-length': String(body.length),
      'access-control-allow-origin': `https://${sample.domain}`,
      vary: 'Origin',
    });
    const head = await harness.ask(path, { method: 'HEAD' });
    expect([head.status, head.body.length]).toEqual([200, 0]);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['no token', { token: null }, '403 token_missing'],
    ['no origin', { origin: null }, '403 origin_missing'],
    ['another origin', { origin: 'https://other.example' }, '403 domain_mismatch'],
  ])('are under the checks: %s', async (_what, more, outcome) => {
    for (const path of ['captions/en/index.m3u8', 'captions/en/seg-0.vtt']) {
      const { status, headers } = await harness.ask(path, more);
      expect(`${status} ${String(headers['x-svc-error'])}`).toBe(outcome);
    }
  });

  it.each([
    'captions/fr/index.m3u8',
    'captions/fr/seg-0.vtt',
    'captions/en/seg-1.vtt',
    'captions/EN/seg-0.vtt',
    'captions/valueOf/seg-0.vtt',
  ])('%s is 404 after the checks [CDN-211]', async (path) => {
    expect((await harness.ask(path, { token: null })).headers['x-svc-error']).toBe('token_missing');
    const { status, headers } = await harness.ask(path);
    expect([status, headers['x-svc-error']]).toEqual([404, 'not_found']);
  });

  it('answers a part, and nothing to who has it already', async () => {
    const whole = await harness.ask('captions/en/seg-0.vtt');
    const part = await harness.ask('captions/en/seg-0.vtt', { headers: { Range: 'bytes=0-5' } });
    expect([part.status, part.body.toString()]).toEqual([206, 'WEBVTT']);
    const headers = { 'If-None-Match': whole.headers.etag ?? '' };
    expect((await harness.ask('captions/en/seg-0.vtt', { headers })).status).toBe(304);
    await show(await stored('en', 'English', `${text}y`));
    await waitFor(async () => (await harness.ask('captions/en/seg-0.vtt', { headers })).status === 200, {
      what: 'the new captions to have another tag',
    });
  });

  it('follow the record: replaced, taken away and none', async () => {
    const token = harness.token();
    await master(token);
    const asked = harness.record.reads;
    const replaced = await stored('en', 'English', `${text}z`);
    await show(replaced, await stored('de', 'Deutsch', text));
    await waitFor(async () => (await master(token)).includes('LANGUAGE="de"'), { what: 'the new language' });
    expect(await master(token)).not.toContain('pt-BR');
    expect((await harness.ask('captions/en/seg-0.vtt')).body.toString()).toBe(`${text}z`);
    expect((await harness.ask('captions/pt-BR/seg-0.vtt')).status).toBe(404);
    await show();
    await waitFor(async () => !(await master(token)).includes('SUBTITLES'), { what: 'no captions' });
    expect(harness.record.reads).toBe(asked);
  });

  it('of a producer that knows no captions are none', async () => {
    const { captions, ...older } = videoState({ version: ++version });
    expect(captions).toEqual([]);
    expect(await master(harness.token())).toContain('SUBTITLES');
    await harness.publish({ v: 1, kind: 'video', state: older as typeof older & { captions: [] } });
    await waitFor(async () => !(await master(harness.token())).includes('SUBTITLES'), { what: 'its state' });
  });
});
