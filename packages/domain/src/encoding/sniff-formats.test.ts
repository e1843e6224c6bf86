import { describe, expect, it } from '@jest/globals';
import { sniffContainer } from './sniff.ts';
import { type Sniffed } from './types.ts';

/** Each sign of a format by itself, and what is nearly one. */

const bytes = (...values: number[]): Buffer => Buffer.from(values);
const text = (content: string): Buffer => Buffer.from(content, 'latin1');
const what = (head: Buffer): string => {
  const sniffed: Sniffed = sniffContainer(head);
  if (sniffed.kind === 'video') return sniffed.container;
  return 'format' in sniffed ? `${sniffed.kind} ${sniffed.format}` : sniffed.kind;
};
const box = (type: string, brand = 'isom'): Buffer => text(`\0\0\0\u0014${type}${brand}\0\0\0\0`);

describe('a box', () => {
  it.each('ftyp moov mdat free skip wide pnot uuid moof sidx styp pdin junk'.split(' '))(
    'of type %s begins an MP4',
    (type) => {
      expect(what(box(type))).toBe('mp4');
      expect(what(box(type, 'qt  '))).toBe('mp4');
    },
  );

  it.each('avif heic heix heim heis mif1 miaf'.split(' '))('of brand %s is a still', (brand) => {
    expect(what(box('ftyp', brand))).toBe(`image ${brand}`);
    expect(what(box('moov', brand))).toBe('mp4');
  });

  it('of sound is sound, and of no known type nothing', () => {
    expect([what(box('ftyp', 'M4A ')), what(box('ftyp', 'M4B '))]).toEqual(['audio m4a', 'audio m4a']);
    expect(what(box('abcd'))).toBe('unknown');
  });
});

describe('the first bytes', () => {
  it.each<[string, Buffer]>([
    ['matroska', bytes(0x1a, 0x45, 0xdf, 0xa3)],
    ['avi', text('RIFF\0\0\0\0AVI ')],
    ['audio wav', text('RIFF\0\0\0\0WAVE')],
    ['image webp', text('RIFF\0\0\0\0WEBP')],
    ['flv', text('FLV')],
    ['mpegps', bytes(0, 0, 1, 0xba)],
    ['unsupported ogg', text('OggS....theora')],
    ['unsupported ogg', text('OggS....BBCD')],
    ['audio ogg', text('OggS....')],
    ['unsupported asf', bytes(0x30, 0x26, 0xb2, 0x75)],
    ['unsupported realmedia', text('.RMF')],
    ['unsupported mxf', bytes(0x06, 0x0e, 0x2b, 0x34)],
    ['image png', bytes(0x89, 0x50, 0x4e, 0x47)],
    ['image jpeg', bytes(0xff, 0xd8, 0xff)],
    ['image gif', text('GIF89a')],
    ['image bmp', text('BM\x01\x02\x03\x04\0\0\x05')],
    ['image tiff', bytes(0x49, 0x49, 0x2a, 0)],
    ['image tiff', bytes(0x4d, 0x4d, 0, 0x2a)],
    ['image psd', text('8BPS')],
    ['image ico', bytes(0, 0, 1, 0, 1, 0, 16, 16, 0, 0)],
    ['image pnm', text('P1 ')],
    ['image pnm', text('P7\n')],
    ['image jpeg2000', text('\0\0\0\x0cjP  ')],
    ['image jpeg2000', bytes(0xff, 0x4f, 0xff, 0x51)],
    ['image jxl', bytes(0xff, 0x0a)],
    ['audio mp3', text('ID3')],
    ['audio flac', text('fLaC')],
    ['audio aiff', text('FORM\0\0\0\0AIFF')],
    ['audio aiff', text('FORM\0\0\0\0AIFC')],
    ['audio amr', text('#!AMR')],
    ['audio caf', text('caff')],
    ['audio midi', text('MThd')],
    ['audio ac3', bytes(0x0b, 0x77)],
    ['reference hls', text('#EXTM3U')],
    ['reference concat', text(' \n ffconcat')],
    ['reference dash', text('<?xml?><MPD>')],
    ['reference dash', text('<MPD\nx=""')],
    ['reference smooth streaming', text('<SmoothStreamingMedia>')],
    ['reference pls', text('[PlayList]')],
    ['reference sdp', text('v=0\n')],
    ['reference sdp', text('v=0\r\n')],
    ['image svg', text('<?xml?><SVG>')],
    ['image svg', text('<svg\n')],
    ['image xbm', text('#define a 12\n#define b 1')],
    ['image xbm', text('/* a\n*/ #define  ab_c  1 \n  #define')],
    ['image xbm', text('/* a */#define a 1\n#define b 1')],
    ['image xpm', text('/* XPM */')],
  ])('say that it is %s', (expected, head) => {
    expect(what(head)).toBe(expected);
    expect(what(Buffer.concat([head, text('\0\0more of it')]))).toBe(expected);
  });

  it('say so only where they are first', () => {
    const signs = ['FLV', '.RMF', 'OggS', '8BPS', 'GIF8', 'ID3', 'fLaC', '#!AMR', 'caff', 'MThd', 'P6 '];
    const words = ['#EXTM3U', 'ffconcat', '[playlist]', 'v=0\n', '#define a 1\n#define b 1', '/* XPM */'];
    for (const sign of [...signs, ...words])
      expect([sign, what(text(`x${sign}`))]).toEqual([sign, 'unknown']);
  });

  it.each<[string, Buffer]>([
    ['RIFF of another kind', text('RIFF\0\0\0\0CDDA')],
    ['AVI in no RIFF', text('RIFX\0\0\0\0AVI ')],
    ['BM with something reserved', text('BM\0\0\0\0\x01\0')],
    ['BM that is short', text('BMx')],
    ['an icon of no pictures', bytes(0, 0, 1, 0, 0, 0, 16, 16, 0, 0)],
    ['an icon with something reserved', bytes(0, 0, 1, 0, 1, 0, 16, 16, 0, 1)],
    ['P0', text('P0 ')],
    ['P8', text('P8 ')],
    ['P6 and a letter', text('P6x')],
    ['FORM of another kind', text('FORM\0\0\0\x008SVX')],
    ['AIFF in no FORM', text('LIST\0\0\0\0AIFF')],
    ['another tag than MPD', text('<MPDX>')],
    ['another tag than SmoothStreamingMedia', text('<SmoothStreamingMediaX>')],
    ['another tag than svg', text('<svgx>')],
    ['SDP of another version', text('v=0x\n')],
    ['one definition', text('#define a 1\n')],
    ['definitions of words', text('#define a b\n#define c d')],
    ['a comment that is none', text('/* a #define a 1\n#define b 1')],
    ['half of Matroska', bytes(0x1a, 0x45, 0xdf)],
    ['half of a JPEG', bytes(0xff, 0xd8)],
    ['one byte', bytes(0xff)],
    ['a list with a mark in it', Buffer.from('#EXT\ufeffM3U')],
  ])('do not say so: %s', (_what, head) => {
    expect(what(head)).toBe('unknown');
  });
});

describe('a transport stream', () => {
  /** Packets of `size` from `first` on, in a head of `length` bytes. */
  const stream = (size: number, first: number, length: number): Buffer => {
    const head = Buffer.alloc(length, 0xff);
    for (let at = first; at < length; at += size) head[at] = 0x47;
    return head;
  };

  it.each([188, 192, 204])('of packets of %d bytes may begin anywhere in one', (size) => {
    for (const first of [0, 1, size - 1]) expect(what(stream(size, first, 4096))).toBe('mpegts');
  });

  it('needs three packets, and a fourth to be whole', () => {
    expect(what(stream(188, 0, 4 * 188))).toBe('mpegts');
    expect(what(stream(188, 187, 4 * 188))).toBe('mpegts');
    expect(what(stream(188, 0, 4 * 188 - 1))).toBe('unknown');
  });

  it('has no hole in its first eight packets', () => {
    for (const packet of [0, 3, 7]) {
      const head = stream(188, 0, 9 * 188);
      head[packet * 188] = 0;
      expect([packet, what(head)]).toEqual([packet, 'unknown']);
    }
    const head = stream(188, 0, 12 * 188);
    head[8 * 188] = 0;
    expect(what(head)).toBe('mpegts');
  });
});

describe('loose sound', () => {
  const at = (header: number, size: number, again = header): Buffer => {
    const head = Buffer.alloc(Math.max(size + 2, 8));
    head.writeUInt32BE(header);
    head.writeUInt16BE(again >>> 16, size);
    return head;
  };
  const kbps1 = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
  const kbps2 = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
  /** By the two bits of the version: samples for each kbit, bit rates, sample rates (ISO 11172-3, 13818-3). */
  const versions = [
    { version: 3, samples: 144, kbps: kbps1, hertz: [44_100, 48_000, 32_000] },
    { version: 2, samples: 72, kbps: kbps2, hertz: [22_050, 24_000, 16_000] },
    { version: 0, samples: 72, kbps: kbps2, hertz: [11_025, 12_000, 8_000] },
  ];
  const headerOf = (version: number, layer: number, rate: number, hertz: number, padding: number): number =>
    ((0x7ff << 21) | (version << 19) | (layer << 17) | (rate << 12) | (hertz << 10) | (padding << 9)) >>> 0;

  it('is MP3 when the next frame begins where the first one ends, for every kind of frame', () => {
    for (const { version, samples, kbps, hertz } of versions) {
      for (const [i, rate] of kbps.entries()) {
        for (const [j, each] of hertz.entries()) {
          for (const padding of [0, 1]) {
            const header = headerOf(version, 1, i + 1, j, padding);
            const size = Math.floor((samples * rate * 1000) / each) + padding;
            const seen = [what(at(header, size)), what(at(header, size - 1)), what(at(header, size + 1))];
            expect([header.toString(16), ...seen]).toEqual([
              header.toString(16),
              'audio mp3',
              'unknown',
              'unknown',
            ]);
          }
        }
      }
    }
  });

  it('is none with a header that nothing has', () => {
    const size = 417;
    expect(what(at(headerOf(3, 1, 9, 0, 0), size))).toBe('audio mp3');
    const wrong = [
      ...[headerOf(1, 1, 9, 0, 0), headerOf(3, 0, 9, 0, 0), headerOf(3, 2, 9, 0, 0), headerOf(3, 3, 9, 0, 0)],
      ...[headerOf(3, 1, 0, 0, 0), headerOf(3, 1, 15, 0, 0), headerOf(3, 1, 9, 3, 0)],
      (headerOf(3, 1, 9, 0, 0) & ~(1 << 21)) >>> 0,
    ];
    for (const header of wrong) {
      for (const length of [size, 208, 522, 7]) expect(what(at(header, length))).toBe('unknown');
    }
  });

  it('goes on with the same kind of frame', () => {
    const header = headerOf(3, 1, 9, 0, 0);
    expect(what(at(header, 417, (header ^ (1 << 16)) >>> 0))).toBe('audio mp3');
    expect(what(at(header, 417, (header ^ (1 << 19)) >>> 0))).toBe('unknown');
  });

  const adts = (size: number, length = size + 2, again = 0xfff1): Buffer => {
    const head = Buffer.alloc(length);
    head.set([0xff, 0xf1, 0x50, 0x80 | (size >> 11), (size >> 3) & 0xff, (size & 7) << 5, 0xfc]);
    if (size + 2 <= length) head.writeUInt16BE(again, size);
    return head;
  };

  it('is AAC when the next frame begins where the first one ends', () => {
    for (const size of [7, 8, 300, 2_047, 2_048, 2_500, 4_000]) {
      expect([size, what(adts(size))]).toEqual([size, 'audio aac']);
      expect([size, what(adts(size, size + 1))]).toEqual([size, 'unknown']);
    }
    expect(what(adts(300, 302, 0xfff0))).toBe('audio aac');
    expect(what(adts(300, 302, 0xfff9))).toBe('audio aac');
    for (const again of [0xfff3, 0xfff5, 0xffe1, 0xfef1]) expect(what(adts(300, 302, again))).toBe('unknown');
    expect(what(adts(6, 20))).toBe('unknown');
  });

  it('needs eight bytes to tell', () => {
    expect(what(bytes(0xff, 0xf1, 0x50, 0x80, 0, 0, 0))).toBe('unknown');
  });
});
