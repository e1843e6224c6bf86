import { describe, expect, it } from '@jest/globals';
import { audioTaskArgs, imagesTaskArgs, soundCopyArgs, videoTaskArgs } from './ffmpeg-args.ts';
import { inputArgs } from './probe-args.ts';
import { manifestVideoOf } from './testing/samples.ts';
import { type EncodeManifest, type ManifestAudioTrack } from './types.ts';
import { frameFilters, gridFilters, pictureFilters } from './video-graph.ts';

/** The commands of one small encode, whole: what is measured in the encoder's tests holds for these. */

const options = { inputUrl: 'http://127.0.0.1:9/source', outputDir: '/out', threads: 3 };
const track: ManifestAudioTrack = {
  ...{ stream: 1, name: 'Audio', language: null, channels: 1, sampleRate: 44_100, bitrate: 80_000 },
  ...{ sourceChannels: 1, sourceLayout: 'mono', copiedFromSeconds: null, segmentFrames: 258, frames: 173 },
};
const manifest: EncodeManifest = {
  ...{ v: 1, planner: 'x', container: 'mp4', video: manifestVideoOf(), zeroSeconds: 0, discontinuous: false },
  ...{ frameRate: [25, 1], frames: 100, heldFrames: 0, segmentFrames: 150, durationSeconds: 4 },
  renditions: [
    {
      ...{ quality: '360p', width: 640, height: 360, crf: 23, maxrate: 900_000, bufsize: 1_350_000 },
      level: 30,
    },
  ],
  ...{ audio: [track], chunks: [{ firstFrame: 0, frames: 100 }], tasks: [], notes: [] },
  images: { poster: { atSeconds: 0.4, width: 640, height: 360 } },
};
const input = inputArgs(options.inputUrl);
const quiet = ['-hide_banner', '-nostdin', '-nostats', '-v', 'error', '-progress', 'pipe:1', '-y'];
const anonymous = [
  ...['-map_metadata', '-1', '-map_chapters', '-1'],
  ...['-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'],
];
const muxed = ['-use_editlist', '0', '-avoid_negative_ts', 'disabled', '-f', 'mp4'];
const [chunk] = manifest.chunks;
if (chunk === undefined) throw new Error('there is no chunk');
const filters = pictureFilters(manifest.video, { width: 640, height: 360 }, gridFilters(manifest, chunk));
const picture = ['-noautorotate', '-reinit_filter', '0', '-threads', '3', ...input];

describe('ffmpeg', () => {
  it('encodes a video by this command', () => {
    expect(videoTaskArgs(manifest, 0, options)).toEqual({
      args: [
        ...quiet,
        ...['-copyts', '-filter_complex_threads', '3', ...picture],
        ...['-filter_complex', `[0:0]${filters.join(',')}[v0]`, '-map', '[v0]'],
        ...['-c:v', 'libx264', '-preset', 'veryfast', '-threads', '3', '-profile:v', 'high'],
        ...['-level:v', '3.0', '-pix_fmt', 'yuv420p', '-crf', '23'],
        ...['-maxrate', '900000', '-bufsize', '1350000'],
        ...['-g', '150', '-keyint_min', '150', '-sc_threshold', '0', '-x264-params', 'b-pyramid=none'],
        ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
        ...['-fps_mode', 'passthrough', ...anonymous, '-flags:v', '+bitexact+cgop'],
        ...['-movflags', '+empty_moov+frag_keyframe+default_base_moof+negative_cts_offsets+frag_discont'],
        ...[...muxed, '/out/video-0-360p.mp4'],
      ],
      outputs: [{ file: 'video-0-360p.mp4', kind: 'rendition', index: 0 }],
      frames: 100,
    });
  });

  it('names no file of edges where there are none', () => {
    expect(Object.keys(videoTaskArgs(manifest, 0, options))).toEqual(['args', 'outputs', 'frames']);
  });

  it('opens a turned source once more, for a moment', () => {
    const { args } = videoTaskArgs({ ...manifest, video: manifestVideoOf({ rotation: 90 }) }, 0, options);
    const first = args.indexOf('-noautorotate');
    expect(args.slice(first, first + 2 * picture.length + 2)).toEqual([
      ...[...picture, '-t', '0.001', ...picture],
    ]);
  });

  it('keeps a jumping clock in step by copies that are stamped behind everything', () => {
    const { args } = videoTaskArgs({ ...manifest, discontinuous: true }, 0, options);
    expect(args[quiet.length]).toBe('-filter_complex_threads');
    expect(args.slice(-12)).toEqual([
      ...['/out/video-0-360p.mp4', '-map', '0:0', '-map', '0:1'],
      ...['-c', 'copy', '-bsf', 'setts=ts=TS+1000000/TB', '-f', 'null', '-'],
    ]);
  });

  it('scales smaller renditions from the largest', () => {
    const [small] = manifest.renditions;
    if (small === undefined) throw new Error('there is no rendition');
    const renditions = [
      { ...small, width: 320, height: 180 },
      small,
      { ...small, quality: '720p' as const, width: 1280, height: 720 },
    ];
    const { args, outputs } = videoTaskArgs({ ...manifest, renditions }, 0, options);
    const graph = args[args.indexOf('-filter_complex') + 1] ?? '';
    expect(graph.slice(graph.indexOf('setsar=1,'))).toBe(
      'setsar=1,split=3[s0][s1][v2];[s0]scale=w=320:h=180:flags=bicubic,setsar=1[v0];' +
        '[s1]scale=w=640:h=360:flags=bicubic,setsar=1[v1]',
    );
    expect(outputs.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(() => videoTaskArgs({ ...manifest, renditions: [] }, 0, options)).toThrow(
      new RangeError('a manifest has at least one rendition'),
    );
    expect(() => videoTaskArgs(manifest, 7, options)).toThrow(new RangeError('no chunk 7'));
  });

  it('encodes sound by this command', () => {
    expect(audioTaskArgs(manifest, 0, options)).toEqual({
      args: [
        ...[...quiet, '-copyts', ...input],
        '-filter_complex',
        '[0:1]asetpts=PTS-(0)/TB,aresample=44100:async=1:first_pts=0:ochl=mono,' +
          'aformat=sample_fmts=fltp:sample_rates=44100:channel_layouts=mono,apad,atrim=start_pts=1024:end_pts=177152[a]',
        ...['-map', '[a]', '-c:a', 'aac', '-b:a', '80000', ...anonymous, '-frag_duration', '5979138'],
        ...['-movflags', '+empty_moov+default_base_moof+negative_cts_offsets+frag_discont'],
        ...[...muxed, '/out/audio-0.mp4'],
      ],
      outputs: [{ file: 'audio-0.mp4', kind: 'audio', index: 0 }],
      frames: null,
    });
    expect(() => audioTaskArgs(manifest, 7, options)).toThrow(new RangeError('no audio track 7'));
  });

  it('copies packed sound by this command, and reads the copy', () => {
    const copied = { ...manifest, zeroSeconds: 2, audio: [track, { ...track, copiedFromSeconds: 1.5 }] };
    expect(soundCopyArgs(copied, 0, options)).toBeNull();
    expect(soundCopyArgs(copied, 1, options)).toEqual({
      args: [...quiet, ...input, '-map', '0:1', '-c', 'copy', '-f', 'amr', '/out/sound-1.amr'],
      outputs: [{ file: 'sound-1.amr', kind: 'audio', index: 1 }],
      frames: null,
    });
    const { args } = audioTaskArgs(copied, 1, options);
    const from = args.indexOf('-protocol_whitelist');
    expect(args.slice(from, from + 6)).toEqual([
      ...['-protocol_whitelist', 'file', '-f', 'amr', '-i', '/out/sound-1.amr'],
    ]);
    expect(args[args.indexOf('-filter_complex') + 1]).toMatch(/^\[0:0\]asetpts=PTS-\(0\.5\)\/TB,/);
  });

  const jpeg = 'scale=in_color_matrix=bt709:out_color_matrix=bt601:in_range=tv:out_range=pc,format=yuvj420p';
  const poster = (onGrid: string[], more: string): string => {
    const filtered = pictureFilters(manifest.video, manifest.images.poster, onGrid).join(',');
    return `[0:0]${filtered},${more}${jpeg}[p]`;
  };
  const written = [
    ...['-c:v', 'mjpeg', '-q:v', '4', '-threads', '1', ...anonymous],
    ...['-update', '1', '-f', 'image2', '/out/poster.jpg'],
  ];

  it('takes the poster by this command', () => {
    const spaced = "select='isnan(prev_selected_t)+gte(t-prev_selected_t,0.25)'";
    expect(imagesTaskArgs(manifest, options)).toEqual({
      args: [
        ...[...quiet, '-ss', '0.400', '-t', '3', ...picture],
        ...['-filter_complex', poster([spaced], 'thumbnail=n=12,'), '-map', '[p]', '-frames:v', '1'],
        ...written,
      ],
      outputs: [{ file: 'poster.jpg', kind: 'poster', index: 0 }],
      frames: null,
    });
  });

  it('looks for a poster in the first seconds, whatever the clock does after them', () => {
    const place = { atSeconds: 0, exact: false };
    const { args } = imagesTaskArgs({ ...manifest, discontinuous: true }, options, place);
    expect(args.slice(quiet.length, quiet.length + 3)).toEqual(['-t', '3', picture[0]]);
    expect(args.at(-1)).toBe('/out/poster.jpg');
  });

  it('takes the picture of a moment by this one', () => {
    expect(imagesTaskArgs(manifest, options, { atSeconds: 3.2, exact: true })).toEqual({
      args: [
        ...[...quiet, '-copyts', '-noaccurate_seek', '-seek_timestamp', '1', '-ss', '0.200000', ...picture],
        ...['-filter_complex', poster(frameFilters(manifest, 80, { fromStart: false }), '')],
        ...['-map', '[p]', '-frames:v', '1', '-fps_mode', 'passthrough', ...written],
      ],
      outputs: [{ file: 'poster.jpg', kind: 'poster', index: 0 }],
      frames: null,
    });
  });
});
