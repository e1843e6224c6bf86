import { describe, expect, it } from '@jest/globals';
import { parseMedia, parseMultivariant, resolve, withToken } from '../src/hls.ts';

const base = 'https://cdn.example/v/vid_1/master.m3u8?token=a/b.c';

describe('a link', () => {
  it.each([
    '720p/index.m3u8?token=a.b',
    './x.m4s',
    '../vid_2/x',
    '../../../x',
    '/v/x?y=/z/',
    'https://other.example/x',
    'a/./b/../c?d=../e',
    '?token=x',
  ])('is made absolute as URL does: %s', (link) => {
    expect(resolve(link, base)).toBe(new URL(link, base).href);
  });

  it('gets the token in place of the one that it has, and of no other parameter', () => {
    expect(withToken('https://c.example/x?token=a.b', 'c-_.d')).toBe('https://c.example/x?token=c-_.d');
    expect(withToken('https://c.example/x?y=1&token=a.b&z=2', '$1')).toBe(
      'https://c.example/x?y=1&token=$1&z=2',
    );
    expect(withToken('https://c.example/x?mytoken=a', 'b')).toBe('https://c.example/x?mytoken=a');
  });
});

describe('a multivariant playlist', () => {
  it('gives its variants from the least bandwidth on, and the sound', () => {
    const text = [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",URI="captions/en/index.m3u8"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a, b",URI="audio/index.m3u8?token=t"',
      '#EXT-X-STREAM-INF:AVERAGE-BANDWIDTH=1,BANDWIDTH=20,CODECS="avc1,mp4a"',
      'hi/index.m3u8',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=5,URI="hi/iframes.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=10',
      'lo/index.m3u8',
    ].join('\r\n');
    expect(parseMultivariant(text, base)).toEqual({
      audioUrl: 'https://cdn.example/v/vid_1/audio/index.m3u8?token=t',
      variants: [
        { bandwidth: 10, url: 'https://cdn.example/v/vid_1/lo/index.m3u8' },
        { bandwidth: 20, url: 'https://cdn.example/v/vid_1/hi/index.m3u8' },
      ],
    });
  });

  it.each([
    ['', 'does not begin'],
    ['<html>', 'does not begin'],
    ['#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1', 'no variant'],
  ])('is none: %j', (text, message) => {
    expect(() => parseMultivariant(text, base)).toThrow(message);
  });
});

describe('a media playlist', () => {
  it('gives the init segment, and segments with their lengths', () => {
    const text =
      '#EXTM3U\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:6.006,\nseg-0.m4s\n#EXTINF:0.5,x\nseg-1.m4s\n#EXT-X-ENDLIST\n';
    expect(parseMedia(text, 'https://c.example/a/index.m3u8')).toEqual({
      initUrl: 'https://c.example/a/init.mp4',
      segments: [
        { url: 'https://c.example/a/seg-0.m4s', ms: 6_006 },
        { url: 'https://c.example/a/seg-1.m4s', ms: 500 },
      ],
    });
    expect(parseMedia('#EXTM3U\n#EXTINF:2,\na.ts', base).initUrl).toBeNull();
  });

  it.each([
    ['#EXTM3U\n#EXT-X-ENDLIST', 'no segments'],
    ['#EXTM3U\n#EXTINF:6,\nseg-0.m4s\nseg-1.m4s', 'no length'],
    ['#EXTM3U\n#EXTINF:x,\nseg-0.m4s', 'no length'],
    ['#EXTM3U\n#EXTINF:0,\nseg-0.m4s', 'no length'],
  ])('is none: %j', (text, message) => {
    expect(() => parseMedia(text, base)).toThrow(message);
  });
});
