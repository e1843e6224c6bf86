import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { classifyHead, unreadable } from './classify.ts';
import { audioTaskArgs, soundCopyArgs } from './ffmpeg-args.ts';
import { createPacketScan } from './packet-scan.ts';
import { planEncode } from './planner.ts';
import { buildProbe, readProbeHeader, type SourceProbe } from './probe.ts';
import {
  encodeManifest,
  type EncodeManifest,
  failureKinds,
  type SourceContainer,
  type SourceFailure,
} from './types.ts';
import { wholeEncode } from './work-plan.ts';

type Fields = Record<string, unknown>;
interface Source {
  container?: SourceContainer;
  /** Fields of ffprobe's streams over those of a plain video; null leaves it out. */
  video?: Fields | null;
  audio?: readonly Fields[];
  frames?: Fields;
  more?: readonly Fields[];
  /** `[first second, seconds]` of the packets. */
  videoAt?: readonly [number, number];
  audioAt?: readonly [number, number];
  packets?: string;
}

const rate = 25;
const line = (stream: number, at: number, duration: number): string =>
  `${stream},${Math.round(at * 1000)},${Math.round(at * 1000)},${duration},K_\n`;

/** A probe as it comes: ffprobe's JSON and its list of packets, through the readers of both. */
function probeOf(source: Source): SourceProbe {
  const { container = 'mp4', video = {}, audio = [], videoAt = [0, 4], audioAt = [0, 4] } = source;
  const picture = { index: 0, codec_type: 'video', codec_name: 'h264', time_base: '1/1000', ...video };
  const size = { width: 1280, height: 720, pix_fmt: 'yuv420p', ...source.frames };
  const streams = [
    ...(video === null ? [] : [{ ...size, ...picture, r_frame_rate: '25/1' }]),
    ...audio.map((fields, i) => ({
      ...{ index: i + 1, codec_type: 'audio', codec_name: 'aac', time_base: '1/1000' },
      ...{ sample_rate: '48000', channels: 2, channel_layout: 'stereo', ...fields },
    })),
    ...(source.more ?? []),
  ];
  const frame = { media_type: 'video', stream_index: 0, best_effort_timestamp: videoAt[0] * 1000, ...size };
  const header = readProbeHeader(
    JSON.stringify({ frames: video === null ? [] : [frame], streams, format: { format_name: 'x' } }),
  );
  const scan = createPacketScan(container, header);
  if (source.packets !== undefined) scan.write(source.packets);
  else {
    for (let n = 0; video !== null && n < videoAt[1] * rate; n++)
      scan.write(line(0, videoAt[0] + n / rate, 40));
    for (const [i] of audio.entries())
      for (let n = 0; n < audioAt[1] * 50; n++) scan.write(line(i + 1, audioAt[0] + n / 50, 20));
  }
  return buildProbe(container, header, scan.end());
}

const plan = (source: Source): { ok: true; manifest: EncodeManifest } | SourceFailure =>
  planEncode(probeOf(source), { maxQuality: '2160p' });

function manifestOf(source: Source): EncodeManifest {
  const planned = plan(source);
  if (!planned.ok) throw new Error(planned.message);
  return encodeManifest.parse(planned.manifest);
}
const codes = (manifest: EncodeManifest): string[] => manifest.notes.map(({ code }) => code);
const matrix = (a: number, b: number, c: number, d: number): Fields => ({
  side_data_list: [
    { displaymatrix: `\n00000000: ${a} ${b} 0\n00000001: ${c} ${d} 0\n00000002: 0 0 1073741824\n` },
  ],
});
const one = 65_536;

describe('the picture of a plan', () => {
  it.each([
    ['upright', {}, 0, false, [1280, 720]],
    ['a quarter turn', matrix(0, one, -one, 0), 90, false, [720, 1280]],
    ['half a turn', matrix(-one, 0, 0, -one), 180, false, [1280, 720]],
    ['three quarters', matrix(0, -one, one, 0), 270, false, [720, 1280]],
    ['mirrored', matrix(-one, 0, 0, one), 0, true, [1280, 720]],
    ['a matrix of zeros', matrix(0, 0, 0, 0), 0, false, [1280, 720]],
  ] as const)(
    'is turned by the display matrix: %s [ENC-001]',
    (_, video, rotation, mirrored, [width, height]) => {
      expect(manifestOf({ video }).video).toMatchObject({
        ...{ rotation, mirrored, displayWidth: width, displayHeight: height },
      });
    },
  );

  it.each([
    ['64:45', 720, 576, [1024, 576]],
    ['4:3', 1440, 1080, [1920, 1080]],
    ['8:9', 720, 480, [640, 480]],
    ['0:1', 720, 480, [720, 480]],
    ['100:1', 720, 480, [720, 480]],
  ] as const)(
    'has its pixels made square: %s [ENC-001]',
    (sample_aspect_ratio, width, height, [shown, tall]) => {
      const { video } = manifestOf({ frames: { width, height, sample_aspect_ratio } });
      expect([video.displayWidth, video.displayHeight]).toEqual([shown, tall]);
    },
  );

  it.each([
    ['progressive, whatever the header says', { interlaced_frame: 0 }, 'tt', 'none'],
    ['top first', { interlaced_frame: 1, top_field_first: 1 }, 'tt', 'tff'],
    [
      'top first by the container, against the decoder',
      { interlaced_frame: 1, top_field_first: 0 },
      'tt',
      'tff',
    ],
    ['bottom first', { interlaced_frame: 1, top_field_first: 1 }, 'bb', 'bff'],
    ['top first by the decoder alone', { interlaced_frame: 1, top_field_first: 1 }, 'unknown', 'tff'],
    ['bottom first by the decoder alone', { interlaced_frame: 1, top_field_first: 0 }, 'unknown', 'bff'],
  ])('is deinterlaced: %s [ENC-008]', (_, frames, field_order, deinterlace) => {
    const manifest = manifestOf({ frames, video: { field_order } });
    expect(manifest.video.deinterlace).toBe(deinterlace);
    expect(codes(manifest).includes('deinterlaced')).toBe(deinterlace !== 'none');
  });

  it.each([
    ['untagged and high', {}, 'bt709', 'tv', 'none'],
    ['untagged and low', { width: 640, height: 480 }, 'smpte170m', 'tv', 'none'],
    ['full range by its format', { pix_fmt: 'yuvj420p' }, 'bt709', 'pc', 'none'],
    ['full range by its tag', { color_range: 'pc' }, 'bt709', 'pc', 'none'],
    ['RGB', { pix_fmt: 'gbrp' }, 'gbr', 'pc', 'none'],
    ['HLG', { color_transfer: 'arib-std-b67', color_space: 'bt2020nc' }, 'bt2020nc', 'tv', 'hlg'],
    ['PQ', { color_transfer: 'smpte2084', color_space: 'bt2020nc' }, 'bt2020nc', 'tv', 'pq'],
  ])('is read in its own colours: %s [ENC-009]', (_, frames, colourMatrix, range, toneMap) => {
    const manifest = manifestOf({ frames });
    expect(manifest.video).toMatchObject({ colour: { matrix: colourMatrix, range }, toneMap });
    expect(codes(manifest).includes('tone_mapped')).toBe(toneMap !== 'none');
  });

  it('has its alpha laid over black, by a decoder that reads it [ENC-010]', () => {
    const manifest = manifestOf({ video: { codec_name: 'vp9', tags: { alpha_mode: '1' } } });
    expect(manifest.video).toMatchObject({ alpha: true, decoder: 'libvpx-vp9', pixelFormat: 'yuva420p' });
    expect(codes(manifest)).toContain('alpha_flattened');
  });
});

describe('the time line of a plan', () => {
  it.each([
    ['as it is', {}, 0, 100, 0],
    ['that begins at an hour', { videoAt: [3600, 4], audioAt: [3600, 4] }, 3600, 100, 0],
    ['whose sound goes on: the last picture stays', { audioAt: [0, 6] }, 0, 150, 50],
    ['whose sound goes on for a moment', { audioAt: [0, 4.1] }, 0, 100, 0],
    ['whose sound stops early', { audioAt: [0, 1] }, 0, 100, 0],
    ['whose sound begins late', { audioAt: [2, 2] }, 0, 100, 0],
    ['whose picture begins late: the first stands in', { videoAt: [1, 3], audioAt: [0, 4] }, 0, 100, 0],
    ['whose picture begins a moment late: sound is cut', { videoAt: [0.2, 3.8] }, 0.2, 95, 0],
  ] as const)('%s', (_, times: Partial<Source>, zeroSeconds, frames, heldFrames) => {
    const manifest = manifestOf({ audio: [{}], ...times });
    expect(manifest).toMatchObject({ zeroSeconds, frames, heldFrames, frameRate: [25, 1] });
    expect(manifest.durationSeconds).toBe(frames / 25);
    expect(codes(manifest).includes('picture_held')).toBe(heldFrames > 0);
  });

  it('drops what does not decode before the first key frame', () => {
    const frames = { best_effort_timestamp: 1000 };
    expect(manifestOf({ frames })).toMatchObject({ zeroSeconds: 1, frames: 75 });
  });

  it('joins a transport stream whose clock jumps', () => {
    const first = Array.from({ length: 50 }, (_, n) => line(0, n / rate, 40));
    const second = Array.from({ length: 50 }, (_, n) => line(0, 7000 + n / rate, 40));
    const packets = [...first, ...second].join('');
    const joined = manifestOf({ container: 'mpegts', packets });
    expect(joined).toMatchObject({ discontinuous: true, frames: 100 });
    expect(codes(joined)).toContain('clock_straightened');
  });

  it('has segments of six seconds in whole frames', () => {
    expect(manifestOf({}).segmentFrames).toBe(150);
  });
});

describe('the chunks of a plan', () => {
  const [seconds, listed] = [60, { nb_frames: String(60 * rate) }];
  const chunksOf = (source: Source, chunkSeconds: number | null = 12, segmentSeconds = 6): string => {
    const planned = planEncode(probeOf({ video: listed, videoAt: [0, seconds], ...source }), {
      ...{ maxQuality: '2160p', chunkSeconds, segmentSeconds },
    });
    if (!planned.ok) throw new Error(planned.message);
    const { chunks, tasks } = encodeManifest.parse(planned.manifest);
    // One task for each, and what it costs by its frames.
    expect(tasks.filter(({ kind }) => kind === 'video').map(({ index }) => index)).toEqual([
      ...chunks.keys(),
    ]);
    return chunks.map(({ firstFrame, frames }) => `${firstFrame}+${frames}`).join(' ');
  };
  const packets = (count: number, text: (n: number) => string): string =>
    Array.from({ length: count }, (_, n) => text(n)).join('');
  const at = (n: number): number => n * 40;

  it.each([
    ['the whole, unless asked', null, 6, '0+1500'],
    ['whole segments', 12, 6, '0+300 300+300 600+300 900+300 1200+300'],
    ['the nearest number of segments', 16, 6, '0+450 450+450 900+600'],
    [
      'one segment at least',
      0.1,
      6,
      '0+150 150+150 300+150 450+150 600+150 750+150 900+150 1050+150 1200+150 1350+150',
    ],
    ['a tail of half a chunk for itself', 24, 6, '0+600 600+600 1200+300'],
    ['a shorter one with the chunk before', 24.5, 4.9, '0+615 615+885'],
    ['the whole when it is shorter than a chunk', 90, 6, '0+1500'],
  ] as const)('are %s', (_, chunkSeconds, segmentSeconds, expected) => {
    expect(chunksOf({}, chunkSeconds, segmentSeconds)).toBe(expected);
  });

  it('lie on the grid of a rate that no second fits', () => {
    const video = { nb_frames: '900', time_base: '1/30000', r_frame_rate: '30000/1001' };
    const list = packets(900, (n) => `0,${n * 1001},${n * 1001},1001,K_\n`);
    expect(chunksOf({ video, packets: list }, 10)).toBe('0+360 360+360 720+180');
  });

  const whole = '0+1500';
  it.each<[string, Source]>([
    ['of another container', { container: 'matroska' }],
    ['that lists fewer pictures than there are: a fragmented one', { video: { nb_frames: '10' } }],
    ['that lists more: one that was cut off', { video: { nb_frames: '1600' } }],
    ['that does not say how many', { video: {} }],
    [
      'whose clock steps back',
      { packets: packets(1500, (n) => `0,${at(n)},${at(n === 700 ? 600 : n)},40,K_\n`) },
    ],
    ['without decoding times', { packets: packets(1500, (n) => `0,${at(n)},N/A,40,K_\n`) }],
    [
      'with key frames far apart',
      { packets: packets(1500, (n) => `0,${at(n)},${at(n)},40,${n % 260 === 0 ? 'K' : '_'}_\n`) },
    ],
    [
      'with no key frame after a while',
      { packets: packets(1500, (n) => `0,${at(n)},${at(n)},40,${n < 1240 ? 'K' : '_'}_\n`) },
    ],
  ])('are the whole of a source %s', (_, source) => {
    expect(chunksOf(source)).toBe(whole);
  });

  it('take key frames ten seconds apart, and packets that are not shown', () => {
    const list = packets(
      1500,
      (n) => `0,${at(n)},${at(n)},40,${n % 250 === 0 ? 'K' : '_'}${n < 2 ? 'D' : '_'}\n`,
    );
    expect(chunksOf({ packets: list }, 30)).toBe('0+750 750+748');
  });

  it('are one again when they do not fit, with the same sound and pictures', () => {
    const planned = planEncode(probeOf({ video: listed, videoAt: [0, seconds], audio: [{}] }), {
      ...{ maxQuality: '2160p', chunkSeconds: 12 },
    });
    if (!planned.ok) throw new Error(planned.message);
    expect(wholeEncode(planned.manifest)).toEqual(
      manifestOf({ video: listed, videoAt: [0, seconds], audio: [{}] }),
    );
  });
});

describe('the sound of a plan', () => {
  const chosen = (audio: readonly Fields[]): (string | null)[][] =>
    manifestOf({ audio }).audio.map(({ stream, language, name }) => [String(stream), language, name]);
  it.each([
    ['none', [], []],
    ['one', [{}], [['1', null, 'Audio']]],
    [
      'the default first, one for each language',
      [
        { tags: { language: 'eng' } },
        { tags: { language: 'fre' }, disposition: { default: 1 } },
        { tags: { language: 'eng' } },
      ],
      [
        ['2', 'fr', 'français'],
        ['1', 'en', 'English'],
      ],
    ],
    [
      'no commentary before the film',
      [
        { disposition: { default: 1, comment: 1 }, tags: { title: 'Talk' } },
        { tags: { title: 'The "film"' } },
      ],
      [['2', null, 'The  film']],
    ],
    ['none that cannot be decoded', [{ codec_name: undefined }, {}], [['2', null, 'Audio']]],
    ['a language that is none', [{ tags: { language: 'x-"' } }], [['1', null, 'Audio']]],
  ])('%s', (_, audio, expected) => {
    expect(chosen(audio)).toEqual(expected);
  });

  it.each([
    ['48000', 2, 48_000, 2, 128_000],
    ['96000', 6, 48_000, 2, 128_000],
    ['8000', 1, 48_000, 1, 80_000],
    ['22050', 1, 44_100, 1, 80_000],
    ['44100', 2, 44_100, 2, 128_000],
  ] as const)(
    '%s Hz in %d channels becomes %d Hz in %d at %d bit/s',
    (sample_rate, channels, hertz, out, bitrate) => {
      const { audio } = manifestOf({ audio: [{ sample_rate, channels }] });
      expect(audio[0]).toMatchObject({ sampleRate: hertz, channels: out, bitrate });
    },
  );

  it.each([
    ['amr_nb', 1.5],
    ['amr_wb', 1.5],
    ['aac', null],
  ])('in %s is copied out of its packets from second %p on', (codec_name, from) => {
    const manifest = manifestOf({ audio: [{ codec_name }], videoAt: [1, 4], audioAt: [1.5, 3] });
    expect(manifest.audio[0]?.copiedFromSeconds).toBe(from);
    const options = { inputUrl: 'http://127.0.0.1/source', outputDir: '/out', threads: 1 };
    const copy = soundCopyArgs(manifest, 0, options);
    const { args } = audioTaskArgs(manifest, 0, options);
    const input = args[args.indexOf('-i') + 1];
    const graph = args[args.indexOf('-filter_complex') + 1] ?? '';
    expect(input).toBe(from === null ? 'http://127.0.0.1/source' : copy?.args.at(-1));
    // The copy begins at its own zero, 0.5 s after the picture does.
    expect(graph).toContain(from === null ? 'asetpts=PTS-(1)/TB' : 'asetpts=PTS-(-0.5)/TB');
    expect(graph.startsWith(from === null ? '[0:1]' : '[0:0]')).toBe(true);
  });

  it('that is the only one and cannot be decoded leaves the video silent, and says so [ENC-011]', () => {
    const manifest = manifestOf({ audio: [{ codec_name: undefined }] });
    expect(manifest.audio).toEqual([]);
    expect(codes(manifest)).toContain('sound_undecodable');
  });
});

describe('the verdict on a source', () => {
  const still = { codec_name: 'png' };
  it.each<[string, Source, string]>([
    ['sound alone', { video: null, audio: [{}] }, 'no_video_track no_video'],
    [
      'sound with a cover',
      { video: { disposition: { attached_pic: 1 } }, audio: [{}] },
      'no_video_track no_video',
    ],
    ['a single still', { video: still, videoAt: [0, 0.04] }, 'no_video_track no_video'],
    ['nothing', { video: null }, 'no_video_track no_video'],
    ['pictures that were cut off', { video: { nb_frames: '50' }, packets: '' }, 'invalid_file corrupt'],
    ['an unknown codec', { video: { codec_name: undefined } }, 'unsupported_codec no_decodable_video'],
    ['no picture that decodes', { frames: { stream_index: 9 } }, 'invalid_file corrupt'],
    ['pictures too large', { frames: { width: 20_000 } }, 'invalid_file unsupported_dimensions'],
  ])('%s: %s [ENC-014, ENC-015, ENC-017]', (_, source, expected) => {
    const planned = plan(source);
    expect(planned.ok ? 'ready' : `${planned.code} ${planned.kind}`).toBe(expected);
  });

  const unknown = { codec_name: undefined };
  it.each<[string, Source, string]>([
    ['only sound that nothing decodes', { video: null, audio: [unknown, unknown] }, 'unsupported_codec'],
    [
      'such sound and a cover',
      { video: { disposition: { attached_pic: 1 } }, audio: [unknown] },
      'unsupported_codec',
    ],
    ['such sound beside sound that decodes', { video: null, audio: [unknown, {}] }, 'no_video_track'],
    ['such sound beside a picture that decodes', { audio: [unknown] }, 'ready'],
  ])('%s: %s [ENC-016]', (_, source, expected) => {
    const planned = plan(source);
    expect(planned.ok ? 'ready' : planned.code).toBe(expected);
  });

  it('says for every kind in words what was wrong and what to do [VID-013]', () => {
    const heads = [
      ...(['empty', 'unknown'] as const).map((kind) => ({ kind })),
      ...(['image', 'reference'] as const).map((kind) => ({ kind, format: 'X' })),
      { kind: 'video', container: 'mp4' } as const,
    ].map((head) => classifyHead(head, ['video/webm']));
    const sources = [
      ...[{ video: null }, { video: null, audio: [unknown] }, { video: unknown }],
      ...[{ frames: { stream_index: 9 } }, { frames: { width: 20_000 } }],
    ].map(plan);
    const all = [...heads, ...sources, unreadable('')].filter((verdict) => verdict?.ok === false);
    expect(all.map(({ kind }) => kind).toSorted()).toEqual(failureKinds.toSorted());
    for (const { message } of all) {
      expect(message).toMatch(/^[A-Z].{15,}\. (Upload|Export) .+\.$/);
    }
  });

  it('takes a single picture of a video codec for a video', () => {
    expect(manifestOf({ videoAt: [0, 0.04] }).frames).toBe(1);
  });

  it('takes the film, not the larger cover', () => {
    const cover = {
      ...{
        index: 7,
        codec_type: 'video',
        codec_name: 'mjpeg',
        time_base: '1/1000',
        width: 4000,
        height: 4000,
      },
      disposition: { attached_pic: 1 },
    };
    expect(manifestOf({ more: [cover] }).video.stream).toBe(0);
  });

  it('is a verdict or a valid plan for whatever ffprobe lists', () => {
    const number = fc.option(fc.nat(), { nil: undefined });
    const packet = fc.tuple(
      fc.nat(2),
      fc.integer(),
      fc.integer(),
      fc.nat(),
      fc.constantFrom('K_', '_', '_D', ''),
    );
    const fields = fc.record({ width: number, height: number, has_b_frames: number }, { requiredKeys: [] });
    fc.assert(
      fc.property(
        fields,
        fc.array(packet),
        fc.constantFrom('mp4', 'mpegts', 'avi'),
        fc.string(),
        (video, list, container, rest) => {
          const packets = list.map((each) => each.join(',')).join('\n') + rest;
          const planned = plan({ container, video, audio: [{}], packets, frames: { width: 64, height: 64 } });
          if (planned.ok) encodeManifest.parse(planned.manifest);
          else expect(planned.message).toMatch(/\.$/);
        },
      ),
    );
  });
});

describe('createPacketScan', () => {
  it('gives the same for its text in any pieces', () => {
    const text = Array.from({ length: 20 }, (_, n) => line(n % 2, n / 10, 40)).join('');
    const header = readProbeHeader(
      JSON.stringify({
        streams: [0, 1].map((index) => ({ index, codec_type: 'video', time_base: '1/1000' })),
        format: { format_name: 'x' },
      }),
    );
    const scanned = (pieces: readonly string[]): unknown => {
      const scan = createPacketScan('mp4', header);
      for (const piece of pieces) scan.write(piece);
      return scan.end();
    };
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 5 }), (cuts) => {
        const edges = [0, ...cuts.sort((a, b) => a - b), text.length];
        expect(scanned(edges.map((edge, i) => text.slice(edge, edges[i + 1])))).toEqual(scanned([text]));
      }),
    );
  });
});
