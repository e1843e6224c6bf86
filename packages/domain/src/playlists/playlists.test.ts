import { describe, expect, it } from '@jest/globals';
import { type DeliveryIndex, deliveryIndex, qualities } from '@millrace/contract';
import fc from 'fast-check';
import { namedTracks, renderCaptions, renderIframes, renderMaster, renderMedia } from './index.ts';

type Rendition = DeliveryIndex['renditions'][number];
type AudioTrack = DeliveryIndex['audio'][number];

const rendition = (quality: Rendition['quality'], more: Partial<Rendition> = {}): Rendition => ({
  quality,
  width: 1280,
  height: 720,
  frameRate: '30000/1001',
  timescale: 30000,
  objects: ['enc/abc/v720'],
  init: [0, 0, 800],
  // 6.006 s, 6.006 s and 0.5005 s.
  segments: [
    [0, 800, 500_000, 180_180, 60_000],
    [0, 500_800, 400_000, 180_180, 30_000],
    [0, 900_800, 50_000, 15_015, 20_000],
  ],
  peakBandwidth: 700_000,
  averageBandwidth: 600_000,
  codec: 'avc1.64001f',
  ...more,
});

const audio = (more: Partial<AudioTrack> = {}): AudioTrack => ({
  name: 'English',
  language: 'en',
  channels: 2,
  timescale: 48000,
  objects: ['enc/abc/a'],
  init: [0, 0, 700],
  segments: [
    [0, 700, 96_000, 288_288, 0],
    [0, 96_700, 105_000, 312_312, 0],
  ],
  peakBandwidth: 130_000,
  averageBandwidth: 128_000,
  codec: 'mp4a.40.2',
  ...more,
});

const makeIndex = (more: Partial<DeliveryIndex> = {}): DeliveryIndex => ({
  v: 1,
  videoId: 'vid_1',
  durationMs: 12_512.5,
  renditions: [
    rendition('360p', { width: 640, height: 360, peakBandwidth: 400_000, averageBandwidth: 300_000 }),
    rendition('720p'),
  ],
  audio: [audio()],
  files: {},
  ...more,
});

const track = (index: DeliveryIndex, name: string) => {
  const found = namedTracks(index).find((each) => each.name === name);
  if (found === undefined) throw new Error(`no track ${name}`);
  return found.track;
};

describe('renderMaster', () => {
  it('is this text for two renditions and one audio track [CDN-201, CDN-215]', () => {
    expect(deliveryIndex.parse(makeIndex())).toEqual(makeIndex());
    expect(renderMaster(makeIndex(), '2160p').split('\n')).toEqual([
      '#EXTM3U',
      '#EXT-X-VERSION:7',
      '#EXT-X-INDEPENDENT-SEGMENTS',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio/index.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=530000,AVERAGE-BANDWIDTH=428000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360,FRAME-RATE=29.970,AUDIO="audio"',
      '360p/index.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=830000,AVERAGE-BANDWIDTH=728000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO="audio"',
      '720p/index.m3u8',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=79921,AVERAGE-BANDWIDTH=70330,CODECS="avc1.64001f",RESOLUTION=640x360,URI="360p/iframes.m3u8"',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=79921,AVERAGE-BANDWIDTH=70330,CODECS="avc1.64001f",RESOLUTION=1280x720,URI="720p/iframes.m3u8"',
      '',
    ]);
  });

  it('names nothing of audio for a silent video', () => {
    const text = renderMaster(makeIndex({ audio: [] }), '2160p');
    expect(text).not.toMatch(/AUDIO|EXT-X-MEDIA|mp4a/);
    expect(text).toContain('BANDWIDTH=700000,AVERAGE-BANDWIDTH=600000,CODECS="avc1.64001f",');
  });

  it.each(qualities)('lists the qualities up to %s only [CDN-203]', (maximum) => {
    const index = makeIndex({ renditions: qualities.map((quality) => rendition(quality)) });
    const listed = renderMaster(index, maximum)
      .split('\n')
      .flatMap((line) => /^(\d+p)\/index\.m3u8$/.exec(line)?.[1] ?? []);
    expect(listed).toEqual(qualities.slice(0, qualities.indexOf(maximum) + 1));
    const iframes = [...renderMaster(index, maximum).matchAll(/URI="(\d+p)\/iframes\.m3u8"/g)];
    expect(iframes.map(([, quality]) => quality)).toEqual(listed);
  });

  it('covers the dearest audio of the group and names every codec', () => {
    const dear = audio({
      name: 'Surround',
      peakBandwidth: 400_000,
      averageBandwidth: 380_000,
      codec: 'ac-3',
    });
    const text = renderMaster(makeIndex({ audio: [audio(), dear] }), '2160p');
    expect(text).toContain(
      'BANDWIDTH=800000,AVERAGE-BANDWIDTH=680000,CODECS="avc1.64001f,mp4a.40.2,ac-3",RESOLUTION=640x360',
    );
    expect(text).toContain('URI="audio-2/index.m3u8"');
  });

  it('has one default, unique names, and chooses by language only where that is distinct', () => {
    const tracks = [
      audio({ name: 'A', language: null }),
      audio({ name: 'A', language: 'en' }),
      audio({ name: 'A 2', language: 'EN' }),
      audio({ name: '', language: 'und' }),
    ];
    const media = renderMaster(makeIndex({ audio: tracks }), '2160p').match(/#EXT-X-MEDIA:.*/g) ?? [];
    const short = media.map((line) => line.replace(/.*NAME=(.*),CHANNELS.*/, '$1'));
    expect(short).toEqual([
      '"A",DEFAULT=YES,AUTOSELECT=YES',
      '"A 2",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES',
      '"A 2 2",LANGUAGE="EN",DEFAULT=NO,AUTOSELECT=NO',
      '"Audio",DEFAULT=NO,AUTOSELECT=NO',
    ]);
  });

  it('offers captions on every variant, never unasked [CAP-206]', () => {
    const captions = [
      { language: 'en', name: 'English' },
      { language: 'nb', name: 'norsk "bokmål"' },
      { language: 'no', name: "norsk 'bokmål'" },
      { language: 'qzz', name: '' },
    ];
    const lines = renderMaster(makeIndex(), '2160p', captions).split('\n');
    expect(lines.slice(4, 8)).toEqual([
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,URI="captions/en/index.m3u8"',
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="norsk 'bokmål'",LANGUAGE="nb",DEFAULT=NO,AUTOSELECT=YES,URI="captions/nb/index.m3u8"`,
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="norsk 'bokmål' 2",LANGUAGE="no",DEFAULT=NO,AUTOSELECT=YES,URI="captions/no/index.m3u8"`,
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="captions",NAME="qzz",LANGUAGE="qzz",DEFAULT=NO,AUTOSELECT=YES,URI="captions/qzz/index.m3u8"',
    ]);
    const variants = lines.filter((line) => line.startsWith('#EXT-X-STREAM-INF'));
    expect(variants).toHaveLength(2);
    for (const variant of variants) expect(variant).toMatch(/,AUDIO="audio",SUBTITLES="captions"$/);
  });

  it('lets no name or language of a source break a line or an attribute', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        'x",URI="https://evil.example/',
        'a\n#EXT-X-KEY:METHOD=AES-128',
        'a\r\nhttps://evil.example/',
      ),
    );
    fc.assert(
      fc.property(hostile, hostile, (name, language) => {
        const lines = renderMaster(makeIndex({ audio: [audio({ name, language })] }), '2160p').split(
          /\r?\n|\r/,
        );
        expect(lines).toHaveLength(11);
        const [, , , media = ''] = lines;
        expect(media).toMatch(
          /^#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="[^"]+",(LANGUAGE="[A-Za-z0-9-]+",)?DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio\/index.m3u8"$/,
        );
      }),
    );
  });

  it.each([
    ['\n A\u0001\u2028B "x" \t', "A B 'x'"],
    ['\u0085"\u2029', "'"],
    [' \r\n ', 'Audio'],
  ])('quotes the name %j as %j', (name, quoted) => {
    const master = renderMaster(makeIndex({ audio: [audio({ name })] }), '2160p');
    expect(master).toContain(`,NAME="${quoted}",LANGUAGE=`);
  });

  it('numbers names that come again', () => {
    const master = renderMaster(makeIndex({ audio: [audio(), audio(), audio(), audio()] }), '2160p');
    expect(Array.from(master.matchAll(/NAME="([^"]*)"/g), ([, name]) => name)).toEqual([
      ...['English', 'English 2', 'English 3', 'English 4'],
    ]);
  });

  it.each([
    ['pt-BR', true],
    ['zh-Hant-TW', true],
    ['de-1996', true],
    ['UND', false],
    ['de_DE', false],
    ['en-', false],
    ['en-x"', false],
    ['en-!', false],
    ['e', false],
    ['-en', false],
  ])('takes %j for a language: %s', (language, taken) => {
    const master = renderMaster(makeIndex({ audio: [audio({ language })] }), '2160p');
    expect(master.includes(`,LANGUAGE="${language}",`)).toBe(taken);
  });

  it('takes a last picture of half the longest for a peak, and none that is shorter', () => {
    const peakOf = (ticks: number): number => {
      const segments: Rendition['segments'] = [
        [0, 0, 9, 180_000, 1_000],
        [0, 9, 9, ticks, 60_000],
      ];
      const master = renderMaster(makeIndex({ renditions: [rendition('360p', { segments })] }), '2160p');
      return Number(/I-FRAME-STREAM-INF:BANDWIDTH=(\d+)/.exec(master)?.[1]);
    };
    expect(peakOf(90_000)).toBe(160_000);
    expect(peakOf(89_970)).toBeLessThan(100_000);
  });
});

describe('renderMedia', () => {
  it('is this text for a rendition', () => {
    const index = makeIndex();
    expect(renderMedia(index, track(index, '720p')).split('\n')).toEqual([
      '#EXTM3U',
      '#EXT-X-VERSION:7',
      '#EXT-X-TARGETDURATION:7',
      '#EXT-X-MEDIA-SEQUENCE:0',
      '#EXT-X-PLAYLIST-TYPE:VOD',
      '#EXT-X-INDEPENDENT-SEGMENTS',
      '#EXT-X-MAP:URI="init.mp4"',
      '#EXTINF:6.006000,',
      'seg-0.m4s',
      '#EXTINF:6.006000,',
      'seg-1.m4s',
      '#EXTINF:0.500500,',
      'seg-2.m4s',
      '#EXT-X-ENDLIST',
      '',
    ]);
  });

  it('keeps every sum of durations exact and every duration within the one target', () => {
    const ticks = fc.array(fc.integer({ min: 1, max: 2_000_000 }), { minLength: 1, maxLength: 60 });
    const scale = fc.constantFrom(15360, 24000, 30000, 44100, 48000, 90000);
    fc.assert(
      fc.property(ticks, scale, ticks, (video, timescale, sound) => {
        const index = makeIndex({
          renditions: [
            rendition('360p', { timescale, segments: video.map((own) => [0, 0, 1, own, 1]) }),
            rendition('720p'),
          ],
          audio: [audio({ segments: sound.map((own) => [0, 0, 1, own, 0]) })],
        });
        const targets = namedTracks(index).map(({ track: each }) => {
          const text = renderMedia(index, each);
          const target = Number(/TARGETDURATION:(\d+)/.exec(text)?.[1]);
          const durations = [...text.matchAll(/#EXTINF:(.*),/g)].map(([, own]) => Number(own));
          let written = 0;
          let exact = 0;
          for (const [n, own] of durations.entries()) {
            written += own;
            exact += (each.segments[n]?.[3] ?? 0) / each.timescale;
            expect(Math.abs(written - exact)).toBeLessThan(0.000_001);
            expect(Math.round(own)).toBeLessThanOrEqual(target);
          }
          expect(durations).toHaveLength(each.segments.length);
          return target;
        });
        expect(new Set(targets).size).toBe(1);
      }),
    );
  });
});

describe('renderIframes', () => {
  it('names the first sample of each segment by its byte range [CDN-205]', () => {
    const index = makeIndex();
    const text = renderIframes(index, track(index, '720p'));
    expect(text).toContain('#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI="init.mp4"\n');
    expect(text.split('\n').slice(8, 14)).toEqual([
      '#EXTINF:6.006000,',
      '#EXT-X-BYTERANGE:60000@0',
      'seg-0.m4s',
      '#EXTINF:6.006000,',
      '#EXT-X-BYTERANGE:30000@0',
      'seg-1.m4s',
    ]);
    expect(text).toMatch(/#EXT-X-ENDLIST\n$/);
  });
});

describe('renderCaptions', () => {
  it('is one file as long as the video [CDN-207]', () => {
    expect(renderCaptions(makeIndex({ durationMs: 12_512.5 })).split('\n')).toEqual([
      '#EXTM3U',
      '#EXT-X-VERSION:7',
      '#EXT-X-TARGETDURATION:13',
      '#EXT-X-MEDIA-SEQUENCE:0',
      '#EXT-X-PLAYLIST-TYPE:VOD',
      '#EXTINF:12.512500,',
      'seg-0.vtt',
      '#EXT-X-ENDLIST',
      '',
    ]);
    expect(renderCaptions(makeIndex({ durationMs: 400 }))).toContain('#EXT-X-TARGETDURATION:1\n');
  });

  it('is several where a cue would be farther from its segment’s begin than the clock can tell', () => {
    const hours = (count: number): string => renderCaptions(makeIndex({ durationMs: count * 3_600_000 }));
    expect(hours(6).match(/seg-/g)).toHaveLength(1);
    expect(hours(24).match(/#EXTINF:21600\.000000,\nseg-[0-3]\.vtt/g)).toHaveLength(4);
    expect(hours(6.5)).toContain('#EXT-X-TARGETDURATION:21600\n');
    expect(hours(6.5)).toContain('#EXTINF:21600.000000,\nseg-0.vtt\n#EXTINF:1800.000000,\nseg-1.vtt\n#EXT-X');
  });
});
