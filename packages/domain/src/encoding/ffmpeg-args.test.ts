import { describe, expect, it } from '@jest/globals';
import {
  audioTaskArgs,
  imagesTaskArgs,
  soundCopyArgs,
  type TaskOptions,
  videoTaskArgs,
} from './ffmpeg-args.ts';
import {
  type EncodeManifest,
  type ManifestAudioTrack,
  type ManifestRendition,
  type ManifestVideo,
} from './types.ts';

const options: TaskOptions = { inputUrl: 'http://127.0.0.1/source', outputDir: '/out', threads: 2 };

const video: ManifestVideo = {
  ...{ stream: 3, codec: 'h264', decoder: null, width: 1280, height: 720, pixelFormat: 'yuv420p' },
  ...{ rotation: 0, mirrored: false, displayWidth: 1280, displayHeight: 720 },
  colour: { matrix: 'bt709', primaries: 'bt709', transfer: 'bt709', range: 'tv' },
  ...{ toneMap: 'none', alpha: false, deinterlace: 'none' },
};
const track: ManifestAudioTrack = {
  ...{ stream: 5, name: 'Audio', language: null, channels: 2, sampleRate: 48_000, bitrate: 128_000 },
  ...{
    sourceChannels: 2,
    sourceLayout: 'stereo',
    copiedFromSeconds: null,
    segmentFrames: 281,
    frames: 1_000,
  },
};
const rendition = (
  quality: ManifestRendition['quality'],
  width: number,
  height: number,
): ManifestRendition => ({
  ...{ quality, width, height, crf: 23, maxrate: 2_000_000, bufsize: 3_000_000, level: 31 },
});
const manifestOf = (over: Partial<EncodeManifest> = {}): EncodeManifest => ({
  ...{ v: 1, planner: 'millrace-2', container: 'mp4', video, zeroSeconds: 0.5, discontinuous: false },
  ...{ frameRate: [25, 1], frames: 600, heldFrames: 0, segmentFrames: 150, durationSeconds: 24 },
  renditions: [rendition('360p', 640, 360), rendition('720p', 1280, 720)],
  audio: [track],
  chunks: [{ firstFrame: 0, frames: 600 }],
  images: { poster: { atSeconds: 2.4, width: 1280, height: 720 } },
  tasks: [
    { kind: 'video', index: 0, cost: 1 },
    { kind: 'images', index: 0, cost: 1 },
  ],
  ...{ notes: [], ...over },
});
const videoArgs = (over: Partial<EncodeManifest> = {}, chunk = 0): string[] => [
  ...videoTaskArgs(manifestOf(over), chunk, options).args,
];
/** Values of an option, in their order. */
const valuesOf = (args: readonly string[], option: string): string[] =>
  args.flatMap((arg, i) => (arg === option ? [args[i + 1] ?? ''] : []));
const graphOf = (args: readonly string[]): string => valuesOf(args, '-filter_complex')[0] ?? '';

describe('the command of a video task', () => {
  it('writes a file for each rendition, the largest last, from one decode', () => {
    const { args, outputs, frames } = videoTaskArgs(manifestOf(), 0, options);
    expect(outputs).toEqual([
      { file: 'video-0-360p.mp4', kind: 'rendition', index: 0 },
      { file: 'video-0-720p.mp4', kind: 'rendition', index: 1 },
    ]);
    expect(frames).toBe(600);
    expect(args.filter((arg) => arg.startsWith('/out/'))).toEqual([
      '/out/video-0-360p.mp4',
      '/out/video-0-720p.mp4',
    ]);
    expect(valuesOf(args, '-map')).toEqual(['[v0]', '[v1]']);
    const graph = graphOf(args);
    expect(graph.startsWith('[0:3]')).toBe(true);
    expect(graph).toContain('split=2[s0][v1];[s0]scale=w=640:h=360:flags=bicubic,setsar=1[v0]');
    expect(valuesOf(args, '-i')).toEqual([options.inputUrl]);
  });

  it('has no split for a single rendition', () => {
    const graph = graphOf(videoArgs({ renditions: [rendition('360p', 640, 360)] }));
    expect(graph).not.toContain('split');
    expect(graph.endsWith('setsar=1[v0]')).toBe(true);
  });

  it('has key frames by their number alone, in closed groups', () => {
    const args = videoArgs();
    for (const option of ['-g', '-keyint_min']) expect(valuesOf(args, option)).toEqual(['150', '150']);
    expect(valuesOf(args, '-sc_threshold')).toEqual(['0', '0']);
    expect(valuesOf(args, '-flags:v')).toContain('+bitexact+cgop');
    // The last of an output counts.
    expect(args.lastIndexOf('+bitexact+cgop')).toBeGreaterThan(args.lastIndexOf('+bitexact'));
  });

  it.each([
    [[25, 1], ['b-pyramid=none'], []],
    [[20, 1], ['b-pyramid=none'], []],
    [[10, 1], [], ['0']],
  ] as const)(
    'reorders pictures by one frame at most, and slow ones not at all: %p',
    (frameRate, params, bf) => {
      const args = videoArgs({ frameRate: [...frameRate], renditions: [rendition('360p', 640, 360)] });
      expect(valuesOf(args, '-x264-params')).toEqual(params);
      expect(valuesOf(args, '-bf')).toEqual(bf);
    },
  );

  it('has absolute times, one init segment, no edit list and nothing of the source’s metadata', () => {
    const args = videoArgs({ renditions: [rendition('360p', 640, 360)] });
    expect(valuesOf(args, '-movflags')).toEqual([
      '+empty_moov+frag_keyframe+default_base_moof+negative_cts_offsets+frag_discont',
    ]);
    expect(valuesOf(args, '-use_editlist')).toEqual(['0']);
    expect(valuesOf(args, '-avoid_negative_ts')).toEqual(['disabled']);
    expect(valuesOf(args, '-map_metadata')).toEqual(['-1']);
    expect(valuesOf(args, '-map_chapters')).toEqual(['-1']);
    expect(valuesOf(args, '-fps_mode')).toEqual(['passthrough']);
  });

  it('keeps to the rate, quality and level of its rendition', () => {
    const args = videoArgs({ renditions: [rendition('360p', 640, 360)] });
    const wanted = { '-crf': '23', '-maxrate': '2000000', '-bufsize': '3000000', '-level:v': '3.1' };
    for (const [option, value] of Object.entries(wanted)) expect(valuesOf(args, option)).toEqual([value]);
    expect(valuesOf(args, '-preset')).toEqual(['veryfast']);
    const { args: slow } = videoTaskArgs(manifestOf(), 0, { ...options, preset: 'slow' });
    expect(valuesOf(slow, '-preset')).toEqual(['slow', 'slow']);
  });

  it('leaves turning to the filters, and changes in mid-stream too', () => {
    const args = videoArgs();
    const input = args.indexOf('-i');
    expect(args.indexOf('-noautorotate')).toBeGreaterThan(0);
    expect(args.indexOf('-noautorotate')).toBeLessThan(input);
    expect(valuesOf(args.slice(0, input), '-reinit_filter')).toEqual(['0']);
  });

  it.each([
    ['upright', { rotation: 0, mirrored: false }, 1, '[0:3]'],
    ['turned', { rotation: 90, mirrored: false }, 2, '[1:3]nullsink;[0:3]'],
    ['mirrored', { rotation: 0, mirrored: true }, 2, '[1:3]nullsink;[0:3]'],
  ] as const)('opens a source once more when it is not upright: %s', (_, way, inputs, begin) => {
    const args = videoArgs({ video: { ...video, ...way } });
    expect(valuesOf(args, '-i')).toHaveLength(inputs);
    expect(graphOf(args).startsWith(begin)).toBe(true);
  });

  it('forces a decoder for its own stream only', () => {
    expect(valuesOf(videoArgs({ video: { ...video, decoder: 'libvpx-vp9' } }), '-c:3')).toEqual([
      'libvpx-vp9',
    ]);
    expect(valuesOf(videoArgs(), '-c:3')).toEqual([]);
  });

  it('takes times as they are, and lets ffmpeg straighten a clock that jumps, from all streams alike', () => {
    expect(videoArgs()).toContain('-copyts');
    expect(videoArgs().slice(-2)).not.toEqual(['null', '-']);
    const jumping = videoArgs({ discontinuous: true });
    expect(jumping).not.toContain('-copyts');
    expect(jumping.join(' ')).toMatch(/ -map 0:3 -map 0:5 -c copy .*-f null -$/);
  });

  it('knows no chunk that the plan has not', () => {
    expect(() => videoTaskArgs(manifestOf(), 1, options)).toThrow(RangeError);
  });
});

describe('the command of a chunk', () => {
  const chunks = [
    { firstFrame: 0, frames: 300 },
    { firstFrame: 300, frames: 300 },
  ];

  it('begins at the key frame before its pictures, cuts nothing there, and hashes both edges', () => {
    const { args, edgesFile } = videoTaskArgs(manifestOf({ chunks }), 1, options);
    const input = args.slice(0, args.indexOf('-i'));
    // Presentation zero at 0.5 s, the chunk 12 s after it, a second to get ready.
    expect(valuesOf(input, '-ss')).toEqual(['11.500000']);
    expect(valuesOf(input, '-seek_timestamp')).toEqual(['1']);
    expect(input).toContain('-noaccurate_seek');
    expect(graphOf(args)).toContain('trim=start_frame=300:end_frame=601');
    expect(graphOf(args)).toContain(
      `,split=2[chunk][edges];[edges]select='eq(n,0)+eq(n,300)'[hashed];[chunk]trim=end_frame=300,split=2`,
    );
    expect(edgesFile).toBe('edges-1.txt');
    expect(valuesOf(args, '-map')).toEqual(['[v0]', '[v1]', '[hashed]']);
    expect(args.at(-1)).toBe('/out/edges-1.txt');
  });

  it('reads the first from the start, and hashes nothing of a whole video', () => {
    expect(valuesOf(videoArgs({ chunks }), '-ss')).toEqual([]);
    const whole = videoTaskArgs(manifestOf(), 0, options);
    expect(whole.edgesFile).toBeUndefined();
    expect(graphOf(whole.args)).not.toContain('edges');
  });
});

describe('the command of a sound task', () => {
  const soundArgs = (
    over: Partial<ManifestAudioTrack> = {},
    rest: Partial<EncodeManifest> = {},
  ): string[] => [...audioTaskArgs(manifestOf({ audio: [{ ...track, ...over }], ...rest }), 0, options).args];

  it('lasts as planned from presentation zero, its start-up frame in place of the first', () => {
    const args = soundArgs();
    expect(graphOf(args)).toBe(
      '[0:5]asetpts=PTS-(0.5)/TB,aresample=48000:async=1:first_pts=0:ochl=stereo,' +
        'aformat=sample_fmts=fltp:sample_rates=48000:channel_layouts=stereo,apad,atrim=start_pts=1024:end_pts=1024000[a]',
    );
    expect(valuesOf(args, '-b:a')).toEqual(['128000']);
    expect(args.at(-1)).toBe('/out/audio-0.mp4');
  });

  it('cuts segments half a frame early, so that rounding does not decide', () => {
    expect(valuesOf(soundArgs(), '-frag_duration')).toEqual([String(Math.round((280.5 * 1024e6) / 48_000))]);
    expect(valuesOf(soundArgs(), '-movflags')).toEqual([
      '+empty_moov+default_base_moof+negative_cts_offsets+frag_discont',
    ]);
  });

  it.each([
    ['stereo', { sourceChannels: 2, sourceLayout: null }, false],
    ['three without a layout', { sourceChannels: 3, sourceLayout: null }, true],
    ['5.1', { sourceChannels: 6, sourceLayout: '5.1' }, false],
  ])('takes the first two of channels without a layout: %s', (_, over, takes) => {
    expect(graphOf(soundArgs(over)).includes('pan=stereo|c0=c0|c1=c1,')).toBe(takes);
  });

  it('reads pictures along when the clock jumps, as the video task reads sound', () => {
    expect(soundArgs({}, { discontinuous: true }).join(' ')).toMatch(
      / -map 0:3 -map 0:5 -c copy .*-f null -$/,
    );
    // A copy has a clock of its own.
    const copied = soundArgs({ copiedFromSeconds: 0 }, { discontinuous: true });
    expect(copied.at(-1)).toBe('/out/audio-0.mp4');
  });

  it('knows no track that the plan has not', () => {
    expect(() => audioTaskArgs(manifestOf(), 1, options)).toThrow(RangeError);
    expect(soundCopyArgs(manifestOf(), 1, options)).toBeNull();
  });
});

describe('the command of the poster', () => {
  it('takes a picture of some seconds, in JPEG’s own colours', () => {
    const { args, outputs } = imagesTaskArgs(manifestOf(), options);
    expect(outputs).toEqual([{ file: 'poster.jpg', kind: 'poster', index: 0 }]);
    expect(valuesOf(args, '-ss')).toEqual(['2.400']);
    expect(valuesOf(args, '-t')).toEqual(['3']);
    expect(graphOf(args)).toContain(
      'scale=in_color_matrix=bt709:out_color_matrix=bt601:in_range=tv:out_range=pc,format=yuvj420p',
    );
    expect(args.at(-1)).toBe('/out/poster.jpg');
  });

  const at = (atSeconds: number, over: Partial<EncodeManifest> = {}, reachSeconds?: number) => {
    const place = { atSeconds, exact: true, ...(reachSeconds === undefined ? {} : { reachSeconds }) };
    return imagesTaskArgs(manifestOf(over), options, place).args;
  };
  const kept = (args: readonly string[]): string | undefined => /trim=[^,]*/.exec(graphOf(args))?.[0];

  it.each([
    ['at the very start', 0, 0],
    ['between two pictures', 0.19, 4],
    ['when a picture begins', 0.28, 7],
    ['at the very end, and past it', 99, 599],
  ])('takes the frame of the grid that is shown %s [VID-208]', (_, atSeconds, frame) => {
    const args = at(atSeconds);
    expect(kept(args)).toBe(`trim=start_pts=${frame}:end_pts=${frame + 1}`);
    expect(graphOf(args)).not.toMatch(/thumbnail|select/);
    expect(args).toEqual(expect.arrayContaining(['-copyts', '-frames:v', '1', '-fps_mode', 'passthrough']));
  });

  it('reads from the key frame some seconds before the moment, else from the start', () => {
    const grid = { zeroSeconds: 2 };
    const sought = (args: readonly string[]): unknown[] => [
      valuesOf(args, '-ss')[0],
      graphOf(args).includes('start_time'),
    ];
    expect(sought(at(10, grid))).toEqual(['9.000000', false]);
    expect(sought(at(10, grid, 8))).toEqual(['4.000000', false]);
    for (const reachSeconds of [10, Infinity]) {
      expect(sought(at(10, grid, reachSeconds))).toEqual([undefined, true]);
    }
    expect(sought(at(3, grid))).toEqual([undefined, true]);
    expect(sought(at(3.04, grid))).toEqual(['2.040000', false]);
  });

  it('does not seek by a jumping clock, and reads the other packets to straighten it', () => {
    const args = at(10, { discontinuous: true });
    expect(valuesOf(args, '-ss')).toEqual([]);
    expect(args).not.toContain('-copyts');
    expect(args.slice(-3)).toEqual(['-f', 'null', '-']);
    expect(graphOf(args)).toContain('start_time=0');
  });

  it('does not seek for the very start', () => {
    expect(
      valuesOf(imagesTaskArgs(manifestOf(), options, { atSeconds: 0, exact: false }).args, '-ss'),
    ).toEqual([]);
    expect(
      valuesOf(imagesTaskArgs(manifestOf(), options, { atSeconds: 7, exact: false }).args, '-ss'),
    ).toEqual(['7.000']);
  });
});
