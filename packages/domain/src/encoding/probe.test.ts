import { describe, expect, it } from '@jest/globals';
import {
  buildProbe,
  needsLongerSample,
  noPackets,
  type ProbedVideo,
  readProbeHeader,
  type SourceProbe,
} from './probe.ts';

type Fields = Record<string, unknown>;
const stream = (index: number, fields: Fields = {}): Fields => ({
  ...{
    index,
    codec_type: 'video',
    codec_name: 'h264',
    width: 640,
    height: 360,
    time_base: '1/1000',
    ...fields,
  },
});
const sound = (index: number, fields: Fields = {}): Fields =>
  stream(index, { codec_type: 'audio', codec_name: 'aac', ...fields });
const frame = (at: number, fields: Fields = {}): Fields => ({
  ...{ media_type: 'video', stream_index: 0, best_effort_timestamp: at, width: 640, height: 360, ...fields },
});
const headerOf = (streams: readonly Fields[], frames: readonly Fields[] = []) =>
  readProbeHeader(JSON.stringify({ streams, frames, format: { format_name: 'x' } }));

function probe(
  streams: readonly Fields[],
  frames: readonly Fields[] = [],
  ticks: readonly number[] = [],
): SourceProbe {
  const times = { ...noPackets, packets: ticks.length, ticks };
  return buildProbe('mp4', headerOf(streams, frames), {
    streams: new Map([[0, times]]),
    discontinuous: false,
  });
}
function videoOf(fields: Fields, frames: readonly Fields[] = [], ticks: readonly number[] = []): ProbedVideo {
  const [video] = probe([stream(0, fields)], frames, ticks).video;
  if (video === undefined) throw new Error('no video');
  return video;
}

describe('needsLongerSample', () => {
  const picture = frame(0);
  const cover = stream(1, { disposition: { attached_pic: 1 } });
  const thumbnails = stream(1, { disposition: { timed_thumbnails: 1 } });
  it.each([
    ['a picture has decoded', [stream(0)], [picture], false],
    ['none has', [stream(0)], [], true],
    ['only subtitles have', [stream(0)], [frame(0, { media_type: 'subtitle' })], true],
    ['only another kind of its stream has', [stream(0)], [frame(0, { media_type: 'audio' })], true],
    ['there is only sound', [sound(0)], [], false],
    ['one of two has', [stream(0), stream(1)], [picture], false],
    ['only the cover has', [stream(0), cover], [frame(0, { stream_index: 1 })], true],
    ['only thumbnails have', [stream(0), thumbnails], [frame(0, { stream_index: 1 })], true],
    ['there is only a cover', [cover], [], false],
  ])('when %s', (_, streams, frames, expected) => {
    expect(needsLongerSample(headerOf(streams, frames))).toBe(expected);
  });
});

describe('the picture by the probe', () => {
  it('is what decodes rather than what the header says', () => {
    const decoded = { width: 320, height: 240, pix_fmt: 'yuv422p', color_space: 'bt709', color_range: 'pc' };
    const declared = {
      pix_fmt: 'yuv420p',
      color_space: 'bt470bg',
      color_range: 'tv',
      color_transfer: 'bt709',
    };
    expect(videoOf(declared, [frame(0, decoded)])).toMatchObject({
      ...{ width: 320, height: 240, pixelFormat: 'yuv422p' },
      colour: { matrix: 'bt709', range: 'pc', transfer: 'bt709', primaries: null },
    });
    expect(videoOf(declared)).toMatchObject({ width: 640, height: 360, pixelFormat: 'yuv420p' });
  });

  it.each(['unknown', 'unspecified', 'none', undefined])('is not called %s', (name) => {
    expect(videoOf({ codec_name: name, color_primaries: name })).toMatchObject({
      ...{ codec: null, colour: { primaries: null } },
    });
  });

  it.each([
    ['64:45', '1:1', 64 / 45],
    [undefined, '4:3', 4 / 3],
    ['0:1', undefined, 1],
    ['8:1', undefined, 8],
    ['81:10', undefined, 1],
    ['1:8', undefined, 1 / 8],
    ['1:9', undefined, 1],
    ['wide', undefined, 1],
  ])('has pixels of the container’s shape, %s, else the frame’s, %s', (declared, decoded, expected) => {
    const frames = [frame(0, { sample_aspect_ratio: decoded })];
    expect(videoOf({ sample_aspect_ratio: declared }, frames).pixelAspect).toBe(expected);
  });

  it('begins with the earliest picture that decodes', () => {
    expect(videoOf({}, [frame(80), frame(40), frame(120)]).firstTick).toBe(40);
    expect(videoOf({}, [frame(0, { best_effort_timestamp: undefined })]).firstTick).toBeNull();
  });

  it('counts fields among the pictures that decoded', () => {
    const frames = [
      frame(0, { interlaced_frame: 1, top_field_first: 1 }),
      frame(40, { interlaced_frame: 1, top_field_first: 0 }),
      frame(80, { interlaced_frame: 0, top_field_first: 1 }),
    ];
    expect(videoOf({}, frames).sample).toEqual({ frames: 3, interlaced: 2, topFirst: 1 });
  });

  const woven = (...at: number[]): Fields[] => at.map((time) => frame(time, { interlaced_frame: 1 }));
  const every = (step: number): number[] => Array.from({ length: 10 }, (_, n) => n * step);
  it.each([
    ['two to a picture', woven(0, 40, 80), every(20), true],
    [
      'nearly two: one is missing',
      woven(0, 40, 80, 120, 160, 200),
      every(20)
        .concat(200)
        .filter((t) => t !== 60),
      true,
    ],
    ['one to a picture', woven(0, 40, 80), every(40), false],
    ['one and a half', woven(0, 40, 80), [0, 20, 40, 80], false],
    ['progressive', [frame(0), frame(40), frame(80)], every(20), false],
    ['one to a picture, more before the first', woven(400, 440, 480), [0, 20, 40, 400, 440, 480], false],
    ['too few to tell', woven(0, 40), every(20), false],
  ])('has packets of fields or not: %s', (_, frames, ticks, expected) => {
    expect(videoOf({}, frames, ticks).fieldPackets).toBe(expected);
  });

  it.each([
    ['yuva420p', {}, true],
    ['yuv420p', {}, false],
    ['yuv420p', { tags: { alpha_mode: '1' } }, true],
    ['yuv420p', { tags: { alpha_mode: '0' } }, false],
    ['gbrap', {}, true],
  ])('is see-through or not: %s %p', (pix_fmt, fields, alpha) => {
    expect(videoOf({ pix_fmt, ...fields }).alpha).toBe(alpha);
  });

  it('has the container’s own words, or none where it has no number', () => {
    const fields = { start_time: '1.5', nb_frames: '250', r_frame_rate: '25/1', avg_frame_rate: '0/0' };
    expect(videoOf(fields)).toMatchObject({
      startSeconds: 1.5,
      declaredPictures: 250,
      declaredRates: [[25, 1]],
    });
    expect(videoOf({ start_time: 'N/A', nb_frames: 'N/A' })).toMatchObject({
      ...{ startSeconds: 0, declaredPictures: null, declaredRates: [], fieldOrder: 'unknown', matrix: null },
    });
  });

  it('has no packets when the scan has none of its stream', () => {
    expect(probe([stream(0), stream(4)]).video.map(({ times }) => times.packets)).toEqual([0, 0]);
    expect(probe([stream(4)]).video[0]?.times).toEqual(noPackets);
  });
});

describe('the sound by the probe', () => {
  it.each([
    [{}, false, false],
    [{ default: 1 }, true, false],
    [{ comment: 1 }, false, true],
    [{ visual_impaired: 1 }, false, true],
    [{ hearing_impaired: 1, default: 1 }, true, true],
  ])('is the film’s or for some: %p', (disposition, isDefault, isSpecial) => {
    expect(probe([sound(0, { disposition })]).audio[0]).toMatchObject({ isDefault, isSpecial });
  });

  it('has what the header says of it', () => {
    const fields = {
      sample_rate: '44100',
      channels: 6,
      channel_layout: '5.1',
      start_time: '0.25',
      codec_tag_string: 'mp4a',
    };
    const [audio] = probe([stream(0), sound(1, { ...fields, tags: { language: 'ara', title: 'T' } })]).audio;
    expect(audio).toMatchObject({
      ...{ index: 1, sampleRate: 44_100, channels: 6, layout: '5.1', startSeconds: 0.25, codecTag: 'mp4a' },
      ...{ language: 'ara', title: 'T' },
    });
  });
});

describe('readProbeHeader', () => {
  it.each([
    '',
    '{',
    '[]',
    '{"streams":[]}',
    '{"streams":[],"format":{}}',
    '{"streams":[{"index":-1}],"format":{"format_name":"x"}}',
  ])('refuses what is not of ffprobe: %s', (text) => {
    expect(() => readProbeHeader(text)).toThrow();
  });
});

describe('what the probe reads of odd headers', () => {
  it.each([
    ['00000000: 1 2 0\n00000001: 3 4 0\n', [1, 2, 3, 4]],
    [
      '\n00000000:    65536       -7           0\n00000001:  -1  2  0\n00000002: 9 9 9\n',
      [65_536, -7, -1, 2],
    ],
    ['00000000: 1 2 0\n', null],
    ['00000000: 1\n00000001: 3 4\n', null],
    ['00000000: 1 2\n00000001: 3\n', null],
    ['', null],
  ])('the display matrix of %j is %j', (displaymatrix, matrix) => {
    expect(videoOf({ side_data_list: [{}, { displaymatrix }] }).matrix).toEqual(matrix);
  });

  it.each(['yuva420p', 'rgba', 'bgra', 'argb', 'abgr', 'gbrap12le', 'ya8', 'ya16le', 'ayuv64le'])(
    '%s is see-through, by what decodes before what is declared',
    (pix_fmt) => {
      expect(videoOf({ pix_fmt }).alpha).toBe(true);
      expect(videoOf({ pix_fmt }, [frame(0, { pix_fmt: 'yuv420p' })]).alpha).toBe(false);
      expect(videoOf({ pix_fmt: 'yuv420p' }, [frame(0, { pix_fmt })]).alpha).toBe(true);
      expect(videoOf({ pix_fmt: `x${pix_fmt}` }).alpha).toBe(false);
    },
  );

  it('has no size, no field order and no rate where none is said', () => {
    expect(videoOf({ width: undefined, height: undefined })).toMatchObject({
      ...{ width: 0, height: 0, fieldOrder: 'unknown', pixelFormat: null, isDefault: false },
      ...{ isAttachment: false, timeBase: [1, 1000], declaredRates: [], alpha: false },
    });
    expect(videoOf({ field_order: 'tt', disposition: { default: 1, attached_pic: 1 } })).toMatchObject({
      ...{ fieldOrder: 'tt', isDefault: true, isAttachment: true },
    });
    expect(videoOf({ disposition: { default: 0, timed_thumbnails: 1 } })).toMatchObject({
      ...{ isDefault: false, isAttachment: true },
    });
  });

  it('takes a time base in lowest terms, and milliseconds for one that is none', () => {
    expect(videoOf({ time_base: '1001/30000' }).timeBase).toEqual([1001, 30_000]);
    expect(videoOf({ time_base: '2/60' }).timeBase).toEqual([1, 30]);
    for (const time_base of ['0/1', '1/0', '', '-1/25', '1/25/1', 'x1/25']) {
      expect(videoOf({ time_base }).timeBase).toEqual([1, 1000]);
      expect(probe([sound(0, { time_base })]).audio[0]?.timeBase).toEqual([1, 1000]);
    }
  });

  it('takes each colour from what decodes, else from the header', () => {
    const declared = {
      color_range: 'tv',
      color_space: 'fcc',
      color_primaries: 'film',
      color_transfer: 'log100',
    };
    const names = { range: 'tv', matrix: 'fcc', primaries: 'film', transfer: 'log100' };
    expect(videoOf(declared).colour).toEqual(names);
    expect(videoOf({}, [frame(0, declared)]).colour).toEqual(names);
    expect(videoOf(declared, [frame(0, { color_range: 'unknown' })]).colour).toEqual(names);
    expect(videoOf({}).colour).toEqual({ range: null, matrix: null, primaries: null, transfer: null });
  });

  it('has nothing of sound that the header does not say', () => {
    expect(probe([sound(0, { codec_name: undefined })]).audio[0]).toEqual({
      ...{ index: 0, codec: null, codecTag: '', channels: 0, layout: null, sampleRate: 0 },
      ...{ language: null, title: null, isDefault: false, isSpecial: false },
      ...{ timeBase: [1, 1000], startSeconds: 0, times: { ...noPackets, packets: 0, ticks: [] } },
    });
    expect(probe([sound(0, { channel_layout: 'unknown', sample_rate: '' })]).audio[0]).toMatchObject({
      ...{ layout: null, sampleRate: 0 },
    });
  });

  it('takes pictures and sound for tracks, and nothing else', () => {
    const found = probe([
      stream(0),
      sound(1),
      stream(2, { codec_type: 'data' }),
      stream(3, { codec_type: undefined }),
    ]);
    expect([found.video.map(({ index }) => index), found.audio.map(({ index }) => index)]).toEqual([
      [0],
      [1],
    ]);
    expect([found.container, found.discontinuous]).toEqual(['mp4', false]);
  });
});
