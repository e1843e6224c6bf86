import { describe, expect, it } from '@jest/globals';
import { type EncodeManifest, encodeManifest } from '@millrace/domain';
import { type MediaOutput, type StoredTrack } from '../tasks/outputs.ts';
import { buildIndex } from './build-index.ts';

const manifest: EncodeManifest = encodeManifest.parse({
  v: 1,
  planner: 'test-1',
  container: 'mp4',
  video: {
    ...{ stream: 0, codec: 'h264', decoder: null, width: 1280, height: 720, pixelFormat: 'yuv420p' },
    ...{ rotation: 0, mirrored: false, displayWidth: 1280, displayHeight: 720 },
    colour: { matrix: 'bt709', primaries: 'bt709', transfer: 'bt709', range: 'tv' },
    ...{ toneMap: 'none', alpha: false, deinterlace: 'none' },
  },
  zeroSeconds: 0,
  discontinuous: false,
  frameRate: [25, 1],
  frames: 200,
  heldFrames: 0,
  segmentFrames: 150,
  durationSeconds: 8,
  renditions: (['360p', '720p'] as const).map((quality) => ({
    ...{ quality, width: quality === '360p' ? 640 : 1280, height: quality === '360p' ? 360 : 720 },
    ...{ crf: 23, maxrate: 1e6, bufsize: 1.5e6, level: 31 },
  })),
  audio: [
    {
      ...{ stream: 1, name: 'Audio', language: 'ar', channels: 2, sampleRate: 48_000, bitrate: 128_000 },
      ...{ sourceChannels: 2, sourceLayout: 'stereo', segmentFrames: 281, frames: 375 },
    },
  ],
  chunks: [{ firstFrame: 0, frames: 200 }],
  images: { poster: { atSeconds: 1, width: 1280, height: 720 } },
  tasks: [
    { kind: 'video', index: 0, cost: 1 },
    { kind: 'images', index: 0, cost: 1 },
  ],
  notes: [],
});

const rendition = (index: number, over: Partial<StoredTrack> = {}): StoredTrack => ({
  ...{
    kind: 'rendition',
    index,
    key: `p/video-${index}.mp4`,
    bytes: 5_000,
    init: [0, 700],
    initHash: `h${index}`,
  },
  ...{ codec: 'avc1.64001f', timescale: 12_800, startTicks: 0 },
  segments: [
    [700, 3_000, 150 * 512, 400, 150],
    [3_700, 1_300, 50 * 512, 300, 50],
  ],
  ...over,
});
const sound = (over: Partial<StoredTrack> = {}): StoredTrack => ({
  ...{ kind: 'audio', index: 0, key: 'p/audio-0.mp4', bytes: 900, init: [0, 600], initHash: 'a' },
  ...{ codec: 'mp4a.40.2', timescale: 48_000, startTicks: 0 },
  segments: [[600, 300, 384_000, 0, 375]],
  ...over,
});
const poster = { name: 'poster.jpg', key: 'p/poster.jpg', bytes: 10, contentType: 'image/jpeg' };

const outputs = (tracks: StoredTrack[]): MediaOutput[] => [
  { tracks, files: [], args: [] },
  { tracks: [], files: [poster], args: [] },
];
const whole = [rendition(0), rendition(1), sound()];

describe('buildIndex', () => {
  it('describes every rendition, the sound and the poster', () => {
    const index = buildIndex('vid_1', manifest, outputs(whole));
    expect(index).toMatchObject({
      v: 1,
      videoId: 'vid_1',
      durationMs: 8_000,
      renditions: [
        { quality: '360p', width: 640, height: 360, frameRate: '25/1', objects: ['p/video-0.mp4'] },
        { quality: '720p', width: 1280, height: 720 },
      ],
      audio: [{ name: 'Audio', language: 'ar', channels: 2, codec: 'mp4a.40.2' }],
      files: { 'poster.jpg': { key: 'p/poster.jpg', bytes: 10, contentType: 'image/jpeg' } },
    });
  });

  it('leaves out sound that could not be decoded', () => {
    expect(buildIndex('vid_1', manifest, outputs(whole.slice(0, 2))).audio).toEqual([]);
  });

  it.each<[string, StoredTrack[]]>([
    ['720p: 0 of 1 chunks', [rendition(0), sound()]],
    ['360p: 2 of 1 chunks', [rendition(0), ...whole]],
    [
      '720p: chunk 0 has 201 frames, not 200',
      [
        rendition(0),
        rendition(1, {
          segments: [
            [700, 3_000, 76_800, 4, 150],
            [3_700, 1_300, 26_112, 4, 51],
          ],
        }),
      ],
    ],
    [
      '360p: chunk 0 has segments of 100, 100 frames',
      [
        rendition(0, {
          segments: [
            [700, 3_000, 51_200, 4, 100],
            [3_700, 1_300, 51_200, 4, 100],
          ],
        }),
        rendition(1),
      ],
    ],
    [
      '720p has other segment edges',
      [
        rendition(0),
        rendition(1, {
          segments: [
            [700, 3_000, 76_801, 4, 150],
            [3_700, 1_300, 25_599, 4, 50],
          ],
        }),
      ],
    ],
    ['720p has other segment edges', [rendition(0), rendition(1, { timescale: 25_600 })]],
    ['720p has other segment edges', [rendition(0), rendition(1, { startTicks: 512 })]],
    [
      'the sound Audio lasts 7000 ms',
      [rendition(0), rendition(1), sound({ segments: [[600, 300, 336_000, 0, 328]] })],
    ],
  ])('refuses what was not planned: %s', (message, tracks) => {
    expect(() => buildIndex('vid_1', manifest, outputs(tracks))).toThrow(message);
  });

  it('takes an end that is missing in all renditions as the end, for the sound too', () => {
    const ended = (index: number): StoredTrack =>
      rendition(index, { segments: [[700, 3_000, 100 * 512, 4, 100]] });
    const long = sound({
      segments: [
        [600, 300, 192_000, 0, 188],
        [900, 300, 192_000, 0, 187],
      ],
    });
    const index = buildIndex('vid_1', manifest, outputs([ended(0), ended(1), long]));
    expect(index.durationMs).toBe(4_000);
    expect(index.audio[0]?.segments).toEqual([[0, 600, 300, 192_000, 0]]);
    expect(index.audio[0]?.averageBandwidth).toBe(600);
  });

  it('refuses a chunk before the last that is not whole', () => {
    const chunked = {
      ...manifest,
      chunks: [
        { firstFrame: 0, frames: 150 },
        { firstFrame: 150, frames: 50 },
      ],
    };
    const chunk = (index: number, start: number, frames: number): StoredTrack =>
      rendition(index, { startTicks: start * 512, segments: [[700, 3_000, frames * 512, 4, frames]] });
    const both = (frames: number): StoredTrack[] =>
      [0, 1].flatMap((i) => [chunk(i, 0, frames), chunk(i, 150, 50)]);
    expect(buildIndex('vid_1', chunked, outputs(both(150))).renditions[0]?.segments.length).toBe(2);
    expect(() => buildIndex('vid_1', chunked, outputs(both(149)))).toThrow(
      '360p: chunk 0 has 149 frames, not 150',
    );
  });
});
