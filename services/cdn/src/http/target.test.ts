import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseTarget, splitUrl, tokensOf } from './target.ts';

const videoId = 'vid_0Az';
const none = { videoId, track: '', quality: null, n: 0, file: '' };

describe('parseTarget', () => {
  it.each([
    ['master.m3u8', { ...none, kind: 'master' }],
    ['360p/index.m3u8', { ...none, kind: 'media', track: '360p', quality: '360p' }],
    ['2160p/iframes.m3u8', { ...none, kind: 'iframes', track: '2160p', quality: '2160p' }],
    ['720p/init.mp4', { ...none, kind: 'init', track: '720p', quality: '720p' }],
    ['720p/seg-0.m4s', { ...none, kind: 'segment', track: '720p', quality: '720p' }],
    ['1440p/seg-1234.m4s', { ...none, kind: 'segment', track: '1440p', quality: '1440p', n: 1234 }],
    ['audio/index.m3u8', { ...none, kind: 'media', track: 'audio' }],
    ['audio-2/seg-7.m4s', { ...none, kind: 'segment', track: 'audio-2', n: 7 }],
    ['audio-10/init.mp4', { ...none, kind: 'init', track: 'audio-10' }],
    ['poster.jpg', { ...none, kind: 'file', file: 'poster.jpg' }],
    ['storyboard.vtt', { ...none, kind: 'file', file: 'storyboard.vtt' }],
    ['storyboard-3.jpg', { ...none, kind: 'file', file: 'storyboard-3.jpg' }],
    ['captions/pt-BR/index.m3u8', { ...none, kind: 'captions', track: 'pt-BR' }],
    ['captions/zh-Hant-TW/seg-0.vtt', { ...none, kind: 'cues', track: 'zh-Hant-TW' }],
  ])('%s [CDN-204, CDN-206, CDN-209]', (rest, target) => {
    expect(parseTarget(`/v/${videoId}/${rest}`)).toEqual(target);
  });

  it.each([
    '/',
    '/v',
    '/v/vid_1',
    '/v/vid_/master.m3u8',
    '/v/acc_1/master.m3u8',
    '/v/vid_1/master.m3u8\n',
    '/v/vid_1/480p/index.m3u8',
    '/v/vid_1/720p/master.m3u8',
    '/v/vid_1/720p/seg-01.m4s',
    '/v/vid_1/720p/seg--1.m4s',
    '/v/vid_1/720p/seg-99999999.m4s',
    '/v/vid_1/audio/iframes.m3u8',
    '/v/vid_1/audio-0/index.m3u8',
    '/v/vid_1/audio-1/index.m3u8',
    '/v/vid_1/audio-100/index.m3u8',
    '/v/vid_1/index.m3u8',
    '/v/vid_1/poster.png',
    '/v/vid_1/captions/../index.m3u8',
    '/v/vid_1/captions//index.m3u8',
    '/v/vid_1/720p/720p/index.m3u8',
    '/e/vid_1',
    '/player/app.js',
  ])('%j is nothing served [CDN-210]', (path) => {
    expect(parseTarget(path)).toBeNull();
  });

  it('takes no path with anything to decode or normalise in it', () => {
    const trick = fc.constantFrom('%2e', '..', '//', '\\', '%', ';', '/./', '\0', '%00', ' ', 'é', '#');
    const whole = `/v/${videoId}/720p/seg-12.m4s`;
    fc.assert(
      fc.property(trick, fc.nat(whole.length), (text, at) => {
        expect(parseTarget(whole.slice(0, at) + text + whole.slice(at))).toBeNull();
      }),
    );
  });

  it('takes any text without harm, and only what begins with the video', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseTarget(text)).toBeNull();
        const target = parseTarget(`/v/${videoId}/${text}`);
        expect(target === null || target.videoId === videoId).toBe(true);
      }),
    );
  });
});

describe('splitUrl and tokensOf', () => {
  it('find every value of token and nothing else, as the URL standard does for plain text', () => {
    const value = fc.stringMatching(/^[A-Za-z0-9_.-]{0,9}$/);
    const pair = fc.tuple(fc.constantFrom('token', 'tokens', 'atoken', 't', 'Token'), value);
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 5 }), (pairs) => {
        const query = pairs.map(([name, text]) => `${name}=${text}`).join('&');
        expect(tokensOf(query)).toEqual(new URLSearchParams(query).getAll('token'));
        expect(splitUrl(`/v?${query}`)).toEqual({ path: '/v', query });
      }),
    );
  });

  it('splits at the first question mark', () => {
    expect(splitUrl('/v')).toEqual({ path: '/v', query: '' });
    expect(splitUrl('/v?a?token=b')).toEqual({ path: '/v', query: 'a?token=b' });
    expect(tokensOf('a?token=b')).toEqual([]);
    expect(splitUrl('?token=b')).toEqual({ path: '', query: 'token=b' });
    expect(tokensOf('&token=b&')).toEqual(['b']);
  });
});
