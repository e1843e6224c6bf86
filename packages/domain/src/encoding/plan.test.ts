import { describe, expect, it } from '@jest/globals';
import { planEncode } from './planner.ts';
import { type PacketTimes, type ProbedAudio, type ProbedVideo, type SourceProbe } from './probe.ts';
import { audioOf, timesOf, videoOf } from './testing/samples.ts';
import { type EncodeManifest } from './types.ts';
import { planTasks, wholeEncode } from './work-plan.ts';

/** Pictures every 40 ms (or `step`), in milliseconds, beginning at `from`. */
const pictures = (count: number, from = 0, step = 40): PacketTimes => ({
  ...timesOf(count),
  ticks: Array.from({ length: count }, (_, n) => from + n * step),
  ...{ lastDuration: step, firstTick: from, endTick: from + count * step },
});
const sound = (from: number, to: number): PacketTimes => ({ ...timesOf(9), firstTick: from, endTick: to });

type Video = Partial<ProbedVideo>;
const manifestOf = (
  video: Video = {},
  audio: readonly Partial<ProbedAudio>[] = [],
  more: Partial<SourceProbe> = {},
): EncodeManifest => {
  const probe: SourceProbe = {
    ...{ container: 'mp4', discontinuous: false },
    video: [videoOf({ times: pictures(100), firstTick: null, ...video })],
    audio: audio.map((each, i) => audioOf({ index: i + 1, times: sound(0, 4000), ...each })),
    ...more,
  };
  const planned = planEncode(probe, { maxQuality: '2160p' });
  if (!planned.ok) throw new Error(planned.message);
  return planned.manifest;
};
const notesOf = (...source: Parameters<typeof manifestOf>): string[] =>
  manifestOf(...source).notes.map(({ code, text }) => `${code}: ${text}`);

describe('the whole plan of a plain source', () => {
  it('says who made it, and has a task for everything', () => {
    const manifest = manifestOf({}, [{}]);
    expect(manifest).toMatchObject({
      ...{ v: 1, planner: 'millrace-2', container: 'mp4', frames: 100, segmentFrames: 150, heldFrames: 0 },
      video: { stream: 0, codec: 'h264', decoder: null, pixelFormat: 'yuv420p', rotation: 0 },
      audio: [{ name: 'Audio', frames: 188 }],
      notes: [],
    });
    expect(manifest.tasks.map(({ kind, index }) => `${kind}-${index}`)).toEqual([
      ...['video-0', 'audio-0', 'images-0'],
    ]);
  });
});

describe('the begin and end of a plan', () => {
  it.each<[string, SourceProbe['container'], number, number]>([
    ['a lead of a quarter second is cut in MP4', 'mp4', 250, 0.25],
    ['a longer one is played in MP4', 'mp4', 280, 0],
    ['and in Matroska', 'matroska', 280, 0],
    ['a second is cut from a broadcast', 'mpegts', 1000, 1],
    ['and more is played', 'mpegts', 1040, 0],
    ['a lead of a second is cut in AVI', 'avi', 1000, 1],
  ])('%s', (_what, container, late, zeroSeconds) => {
    const manifest = manifestOf({ times: pictures(100, late) }, [{}], { container });
    expect(manifest.zeroSeconds).toBeCloseTo(zeroSeconds, 6);
    expect(manifest.frames).toBe(100 + Math.round((late / 1000 - zeroSeconds) * 25));
  });

  it('counts from where the sound begins when that is not zero', () => {
    const manifest = manifestOf({ times: pictures(100, 3000) }, [{ times: sound(2000, 7000) }]);
    expect(manifest).toMatchObject({ zeroSeconds: 2, frames: 125, heldFrames: 0 });
    expect(notesOf({ times: pictures(100, 3000) }, [{ times: sound(2000, 7000) }])).toEqual([
      'picture_late: The sound begins before the picture; the first picture stands in.',
    ]);
  });

  it.each([
    [4190, 100, 0],
    [4210, 106, 6],
    [5000, 125, 25],
  ])('holds the last picture for sound until %d ms: %d frames', (until, frames, heldFrames) => {
    const manifest = manifestOf({}, [{ times: sound(0, until) }]);
    expect(manifest).toMatchObject({ frames, heldFrames });
    expect(manifest.notes.map(({ text }) => text)).toEqual(
      heldFrames > 0 ? ['The sound is longer than the picture; the last picture stays.'] : [],
    );
  });

  it('holds it for no less than a frame, where frames are long', () => {
    const slow = { times: pictures(4, 0, 1000), declaredRates: [[1, 1] as const] };
    expect(manifestOf(slow, [{ times: sound(0, 4900) }]).heldFrames).toBe(0);
    expect(manifestOf(slow, [{ times: sound(0, 5100) }]).heldFrames).toBe(2);
  });

  it('counts held frames from where the picture begins', () => {
    const late = { times: pictures(100, 2000) };
    expect(manifestOf(late, [{ times: sound(2000, 8000) }])).toMatchObject({
      ...{ zeroSeconds: 2, frames: 150, heldFrames: 50 },
    });
  });

  it('gives sound its own end, up to a fifth of a second over the picture’s, and silence before that', () => {
    const framesOf = (from: number, until: number, video: Video = {}): number | undefined =>
      manifestOf(video, [{ times: sound(from, until) }]).audio[0]?.frames;
    expect(framesOf(0, 4100)).toBe(Math.ceil((4.1 * 48_000) / 1024));
    expect(framesOf(0, 4199)).toBe(Math.ceil((4.199 * 48_000) / 1024));
    expect(framesOf(0, 1000)).toBe(188);
    expect(framesOf(2000, 6100, { times: pictures(100, 2000) })).toBe(Math.ceil((4.1 * 48_000) / 1024));
    const two = manifestOf({}, [
      { language: 'eng', times: sound(0, 6000) },
      { language: 'fre', times: sound(0, 9000) },
    ]);
    expect(two.audio.map(({ frames }) => frames)).toEqual([422, 422]);
  });

  it('gives a picture of unknown duration that of a frame', () => {
    expect(manifestOf({ times: { ...pictures(100), lastDuration: 0, endTick: 3960 } }).frames).toBe(100);
    const other = { ...pictures(50, 0, 80), lastDuration: 0, endTick: 3920 };
    expect(manifestOf({ times: other, declaredRates: [[25, 2]] }).frames).toBe(50);
  });

  it.each([
    [null, 0],
    [0, 0],
    [40, 0],
    [80, 0.08],
    [1000, 1],
  ])('begins at the first picture that decodes, but for one: at %s ms', (firstTick, zeroSeconds) => {
    expect(manifestOf({ firstTick })).toMatchObject({
      zeroSeconds,
      frames: Math.round((4 - zeroSeconds) * 25),
    });
  });

  it('takes the only picture for the first, whenever it decodes', () => {
    expect(manifestOf({ times: pictures(1, 400), firstTick: 400 })).toMatchObject({
      zeroSeconds: 0.4,
      frames: 1,
    });
  });

  it('takes no rate from pictures that are not shown', () => {
    const ticks = [0, 7, 31, 1000, ...Array.from({ length: 99 }, (_, n) => 1040 + n * 40)];
    const times = { ...pictures(103), ticks, endTick: 5000 };
    const manifest = manifestOf({ times, firstTick: 1000, declaredRates: [] });
    expect(manifest).toMatchObject({ frameRate: [25, 1], zeroSeconds: 1, frames: 100, notes: [] });
  });

  it('counts a jumping clock from the earliest stream', () => {
    const more = { container: 'mpegts', discontinuous: true } as const;
    const video = { startSeconds: 10, times: pictures(100, 10_000) };
    const audio = [{ startSeconds: 9.5, times: sound(10_000, 14_000) }];
    expect(manifestOf(video, audio, more).zeroSeconds).toBeCloseTo(0.5, 6);
    expect(manifestOf(video, audio, { ...more, discontinuous: false }).zeroSeconds).toBe(10);
    expect(notesOf(video, audio, more)).toEqual([
      'clock_straightened: The clock of the file jumps; the parts were joined.',
    ]);
  });
});

describe('the picture of a plan', () => {
  const one = 65_536;
  const half = Math.round(one / 2);
  it.each<[string, readonly [number, number, number, number] | null, number, boolean]>([
    ['no matrix', null, 0, false],
    ['the identity', [one, 0, 0, one], 0, false],
    ['a quarter', [0, one, -one, 0], 90, false],
    ['half', [-one, 0, 0, -one], 180, false],
    ['three quarters', [0, -one, one, 0], 270, false],
    ['mirrored', [-one, 0, 0, one], 0, true],
    ['upside down', [one, 0, 0, -one], 180, true],
    ['mirrored on its side', [0, one, one, 0], 270, true],
    ['mirrored on its other side', [0, -one, -one, 0], 90, true],
    ['scaled', [0, half, -half, 0], 90, false],
    ['a little askew', [one, 9000, -9000, one], 0, false],
    ['sheared', [half, one, -one, half], 90, false],
    ['sheared far', [2, 1, 3, 2], 0, false],
  ])('is turned by %s', (_what, matrix, rotation, mirrored) => {
    const { video } = manifestOf({ matrix });
    expect(video).toMatchObject({ rotation, mirrored });
    const sideways = rotation === 90 || rotation === 270;
    expect([video.displayWidth, video.displayHeight]).toEqual(sideways ? [720, 1280] : [1280, 720]);
    const turned = `rotated: The picture was turned by ${rotation}°${mirrored ? ' and mirrored' : ''}, as players show it.`;
    expect(notesOf({ matrix })).toEqual(rotation === 0 && !mirrored ? [] : [turned]);
  });

  it('has its pixels made square, and says so', () => {
    const wide = { width: 720, height: 576, pixelAspect: 64 / 45 };
    expect(manifestOf(wide).video).toMatchObject({ displayWidth: 1024, displayHeight: 576 });
    expect(notesOf(wide)).toEqual([
      'square_pixels: Pixels were made square: 720 × 576 is shown as 1024 × 576.',
    ]);
  });

  it.each([
    ['vp9', true, 'libvpx-vp9', 'yuva420p'],
    ['vp8', true, 'libvpx', 'yuva420p'],
    ['prores', true, null, 'yuva444p10le'],
    ['vp9', false, null, 'yuva444p10le'],
  ])('in %s (alpha: %s) is decoded by %s', (codec, alpha, decoder, pixelFormat) => {
    expect(manifestOf({ codec, alpha, pixelFormat: 'yuva444p10le' }).video).toMatchObject({
      ...{ decoder, pixelFormat, alpha },
    });
  });

  it.each([
    ['tt', 0, 'tff'],
    ['bt', 0, 'tff'],
    ['bb', 10, 'bff'],
    ['tb', 10, 'bff'],
    ['unknown', 5, 'tff'],
    ['unknown', 4, 'bff'],
    ['progressive', 6, 'tff'],
  ])('of field order %s (%d of 10 top first) is %s', (fieldOrder, topFirst, deinterlace) => {
    const sample = { frames: 60, interlaced: 10, topFirst };
    expect(manifestOf({ fieldOrder, sample }).video.deinterlace).toBe(deinterlace);
    expect(notesOf({ fieldOrder, sample })).toEqual([
      'deinterlaced: Interlaced pictures were deinterlaced, one frame for each.',
    ]);
    expect(manifestOf({ fieldOrder, sample: { ...sample, interlaced: 0 } }).video.deinterlace).toBe('none');
  });

  it('stands alone: other tracks are named, covers are not', () => {
    const others = (...all: Video[]) => ({
      video: [videoOf({ times: pictures(100) }), ...all.map((each, i) => videoOf({ index: i + 1, ...each }))],
    });
    const [cover, small] = [{ isAttachment: true }, { width: 64, times: pictures(100) }];
    expect(notesOf({}, [], others(cover))).toEqual([]);
    expect(notesOf({}, [], others(cover, small, small))).toEqual([
      'video_not_offered: 2 further video tracks are not offered.',
    ]);
  });

  it('says when its rate is another', () => {
    const fast = { times: pictures(400, 0, 10), declaredRates: [[100, 1] as const] };
    expect(manifestOf(fast).frameRate).toEqual([50, 1]);
    expect(notesOf(fast)).toEqual(['rate_divided: 100/1 frames a second became 50/1.']);
    const ticks = Array.from({ length: 100 }, (_, n) => n * 40 + (n % 3) * 11);
    const variable = { times: { ...pictures(100), ticks } };
    expect(notesOf(variable)).toEqual([
      `constant_rate: The variable frame rate became a constant ${manifestOf(variable).frameRate.join('/')}.`,
    ]);
  });
});

describe('the poster of a plan', () => {
  it.each([
    [1280, 720, 1280, 720],
    [1920, 1080, 1280, 720],
    [1080, 1920, 720, 1280],
    [641, 361, 642, 362],
    [3840, 1600, 1280, 534],
    [16_000, 4, 1280, 2],
  ])('of %d × %d has %d × %d', (width, height, w, h) => {
    const { poster } = manifestOf({ width, height }).images;
    expect([poster.width, poster.height]).toEqual([w, h]);
  });

  it.each([
    [50, 0],
    [74, 0],
    [75, 0.3],
    [100, 0.4],
    [1003, 4.012],
  ])('of %d pictures is taken at %s s', (count, at) => {
    expect(manifestOf({ times: pictures(count) }).images.poster.atSeconds).toBe(at);
  });
});

describe('the cost of tasks', () => {
  const costs = (manifest: EncodeManifest): number[] => planTasks(manifest).map(({ cost }) => cost);
  const manifest = manifestOf({}, [{}]);

  it('follows the pictures made and read, and the length of the sound', () => {
    // 360p and 720p: (0.2304 + 0.9216) × 0.009 + 0.9216 × 0.003 for each of 100 frames.
    expect(costs(manifest)).toEqual([1.3, 0.1, 1]);
    expect(costs({ ...manifest, durationSeconds: 100 })).toEqual([1.3, 3, 1]);
    expect(costs({ ...manifest, video: { ...manifest.video, toneMap: 'pq' } })).toEqual([4.1, 0.1, 1]);
    expect(costs({ ...manifest, video: { ...manifest.video, width: 3840, height: 2160 } })).toEqual([
      ...[3.5, 0.1, 1],
    ]);
  });

  it('is at least a tenth of a second, for each chunk', () => {
    const chunks = [
      { firstFrame: 0, frames: 99 },
      { firstFrame: 99, frames: 1 },
    ];
    expect(costs({ ...manifest, chunks })).toEqual([1.3, 0.1, 0.1, 1]);
    expect(wholeEncode({ ...manifest, chunks })).toEqual(manifest);
  });
});
