import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { classifyHead } from './classify.ts';
import { sniffBytes, sniffContainer } from './sniff.ts';

const bytes = (...values: number[]): Buffer => Buffer.from(values);
const text = (content: string): Buffer => Buffer.from(content);
const box = (type: string, body: string): Buffer => text(`\0\0\0\u0014${type}${body}\0\0\0\0mp42`);
const transport = (size: number, first: number): Buffer => {
  const head = Buffer.alloc(sniffBytes, 0xff);
  for (let at = first; at < head.length; at += size) head[at] = 0x47;
  return head;
};
/** MPEG-1 Layer III, 128 kbit/s, 44.1 kHz: frames of 417 bytes. */
const mp3 = (second: number): Buffer => {
  const head = Buffer.alloc(1000);
  head.set([0xff, 0xfb, 0x90, 0x00]);
  head.set([0xff, 0xfb, 0x90, 0x00], second);
  return head;
};
const adts = (second: number): Buffer => {
  const head = Buffer.alloc(1000);
  for (const at of [0, second]) head.set([0xff, 0xf1, 0x50, 0x80, 300 >> 3, (300 & 7) << 5, 0xfc], at);
  return head;
};

const video: [string, Buffer, string][] = [
  ['MP4', box('ftyp', 'isom'), 'mp4'],
  ['QuickTime', box('ftyp', 'qt  '), 'mp4'],
  ['QuickTime that begins with its media', box('mdat', 'qqqq'), 'mp4'],
  ['QuickTime that begins with its index', box('moov', 'qqqq'), 'mp4'],
  ['Matroska and WebM', bytes(0x1a, 0x45, 0xdf, 0xa3), 'matroska'],
  ['AVI', text('RIFF\0\0\0\0AVI LIST'), 'avi'],
  ['FLV', text('FLV\u0001\u0005'), 'flv'],
  ['a program stream', bytes(0, 0, 1, 0xba, 0x44), 'mpegps'],
  ['a transport stream', transport(188, 0), 'mpegts'],
  ['an AVCHD transport stream', transport(192, 4), 'mpegts'],
  ['a transport stream with error correction', transport(204, 0), 'mpegts'],
  ['a transport stream that was cut anywhere', transport(188, 100), 'mpegts'],
];

const others: [string, Buffer, string, string][] = [
  ['nothing', Buffer.alloc(0), 'empty', 'invalid_file'],
  ['M4A', box('ftyp', 'M4A '), 'audio', 'no_video_track'],
  ['MP3 with a tag', text('ID3\u0003\0'), 'audio', 'no_video_track'],
  ['MP3', mp3(417), 'audio', 'no_video_track'],
  ['ADTS', adts(300), 'audio', 'no_video_track'],
  ['FLAC', text('fLaC\0\0\0"'), 'audio', 'no_video_track'],
  ['WAVE', text('RIFF\0\0\0\0WAVEfmt '), 'audio', 'no_video_track'],
  ['Ogg sound', text('OggS\0\u0002\u0001vorbis'), 'audio', 'no_video_track'],
  ['AMR', text('#!AMR\n'), 'audio', 'no_video_track'],
  ['AC-3', bytes(0x0b, 0x77, 0, 0), 'audio', 'no_video_track'],
  ['AVIF', box('ftyp', 'avif'), 'image', 'no_video_track'],
  ['HEIC', box('ftyp', 'heic'), 'image', 'no_video_track'],
  ['PNG', bytes(0x89, 0x50, 0x4e, 0x47), 'image', 'no_video_track'],
  ['JPEG', bytes(0xff, 0xd8, 0xff, 0xe0), 'image', 'no_video_track'],
  ['GIF', text('GIF89a'), 'image', 'no_video_track'],
  ['BMP', bytes(0x42, 0x4d, 1, 2, 3, 4, 0, 0, 0, 0), 'image', 'no_video_track'],
  ['WebP', text('RIFF\0\0\0\0WEBPVP8 '), 'image', 'no_video_track'],
  ['TIFF', bytes(0x49, 0x49, 0x2a, 0), 'image', 'no_video_track'],
  ['PNM', text('P6 1 1 255\n'), 'image', 'no_video_track'],
  ['SVG', text('<?xml version="1.0"?>\n<svg width="1"/>'), 'image', 'no_video_track'],
  ['XBM', text('#define a_width 8\n#define a_height 8\n'), 'image', 'no_video_track'],
  ['XPM', text('/* XPM */\nstatic'), 'image', 'no_video_track'],
  ['HLS', text('#EXTM3U\n'), 'reference', 'invalid_file'],
  ['HLS after a mark and blank lines', text('\uFEFF\n  #EXTM3U\n'), 'reference', 'invalid_file'],
  ['a concat script', text('ffconcat version 1.0\n'), 'reference', 'invalid_file'],
  ['DASH', text('<?xml version="1.0"?><MPD xmlns="x">'), 'reference', 'invalid_file'],
  ['DASH that holds the word svg', text('<MPD><svg /></MPD>'), 'reference', 'invalid_file'],
  ['Smooth Streaming', text('<SmoothStreamingMedia Major="2">'), 'reference', 'invalid_file'],
  ['PLS', text('[Playlist]\nFile1=x'), 'reference', 'invalid_file'],
  ['SDP', text('v=0\r\no=-'), 'reference', 'invalid_file'],
  ['ASF', bytes(0x30, 0x26, 0xb2, 0x75), 'unsupported', 'invalid_file'],
  ['MXF', bytes(0x06, 0x0e, 0x2b, 0x34), 'unsupported', 'invalid_file'],
  ['Ogg with Theora', text('OggS\0\u0002\u0080theora'), 'unsupported', 'invalid_file'],
  ['text', text('This is not a video.\n'), 'unknown', 'invalid_file'],
  ['one MP3 header and no second', mp3(500), 'unknown', 'invalid_file'],
  ['one ADTS header and no second', adts(500), 'unknown', 'invalid_file'],
  ['zeros', Buffer.alloc(sniffBytes), 'unknown', 'invalid_file'],
];

describe('sniffContainer', () => {
  it.each(video)('reads %s [ENC-012, ENC-013]', (_, head, container) => {
    expect(sniffContainer(head)).toEqual({ kind: 'video', container });
    expect(classifyHead(sniffContainer(head))).toBeNull();
  });

  it.each(others)('does not let %s pass [ENC-014, ENC-017]', (_, head, kind, code) => {
    expect(sniffContainer(head).kind).toBe(kind);
    expect(classifyHead(sniffContainer(head))).toMatchObject({ ok: false, code });
  });

  it('has an answer to any bytes', () => {
    const starts = [...video, ...others].map(([, head]) => head);
    fc.assert(
      fc.property(
        fc.constantFrom(...starts),
        fc.uint8Array({ maxLength: 600 }),
        fc.nat(40),
        (start, rest, cut) => {
          const head = Buffer.concat([start.subarray(0, cut), rest]);
          const sniffed = sniffContainer(head);
          const failure = classifyHead(sniffed);
          expect(failure === null).toBe(sniffed.kind === 'video');
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('never takes a list of other files for a video, whatever follows [ENC-019]', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('#EXTM3U', 'ffconcat version 1.0', 'v=0\n'),
        fc.uint8Array(),
        (start, rest) => {
          expect(sniffContainer(Buffer.concat([text(start), rest])).kind).toBe('reference');
        },
      ),
    );
  });
});

describe('classifyHead with bound content types', () => {
  const mp4 = { kind: 'video', container: 'mp4' } as const;
  const matroska = { kind: 'video', container: 'matroska' } as const;
  const avi = { kind: 'video', container: 'avi' } as const;
  it.each([
    ['MP4 as QuickTime', mp4, ['video/quicktime'], null],
    ['MP4 as MP4', mp4, ['video/mp4'], null],
    ['WebM as Matroska', matroska, ['video/x-matroska'], null],
    ['Matroska as WebM', matroska, ['video/webm'], null],
    ['MP4 among several', mp4, ['video/webm', 'video/mp4'], null],
    ['AVI by a key, which binds nothing', avi, [], null],
    ['WebM as MP4', matroska, ['video/mp4'], 'invalid_file'],
    ['MP4 as WebM', mp4, ['video/webm'], 'invalid_file'],
    ['AVI as MP4', avi, ['video/mp4'], 'invalid_file'],
    ['a type nobody knows', mp4, ['toString'], 'invalid_file'],
  ] as const)('%s [UPT-227, UPL-206]', (_, sniffed, types, code) => {
    expect(classifyHead(sniffed, types)?.code ?? null).toBe(code);
  });
});
