import { describe, expect, it } from '@jest/globals';
import { chooseVideo, classifyHead, classifyVideoError, isUndecodableSound, unreadable } from './classify.ts';
import { type ProbedAudio, type ProbedVideo } from './probe.ts';
import { audioOf, timesOf, videoOf } from './testing/samples.ts';

const probe = (video: readonly ProbedVideo[], audio: readonly ProbedAudio[] = []) =>
  chooseVideo({ container: 'mp4', discontinuous: false, video, audio });
const read = 'MP4, MOV, WebM, Matroska, MPEG-TS, MPEG-PS, AVI or FLV.';

describe('the verdict on the first bytes', () => {
  it.each([
    [{ kind: 'empty' }, 'invalid_file', 'The file is empty. Upload it again.'],
    [
      { kind: 'audio', format: 'mp3' },
      'no_video_track',
      'The file is sound only (mp3). Upload a file with a video track.',
    ],
    [
      { kind: 'image', format: 'png' },
      'no_video_track',
      'The file is a still picture (png). Upload a video file.',
    ],
    [
      { kind: 'reference', format: 'HLS' },
      'invalid_file',
      'The file is a HLS list that points to other files. Upload the video itself.',
    ],
    [
      { kind: 'unsupported', format: 'asf' },
      'invalid_file',
      `Files of type asf are not read. Upload ${read}`,
    ],
    [{ kind: 'unknown' }, 'invalid_file', `The file is not a video that can be read. Upload ${read}`],
  ] as const)('of %j', (sniffed, code, message) => {
    expect(classifyHead(sniffed, ['video/mp4'])).toMatchObject({ ok: false, code, message });
  });

  it.each([
    ['mp4', [], true],
    ['mp4', ['video/mp4'], true],
    ['mp4', ['video/quicktime'], true],
    ['mp4', ['video/webm', 'video/mp4'], true],
    ['mp4', ['video/webm', 'video/x-matroska'], false],
    ['matroska', ['video/webm'], true],
    ['matroska', ['video/x-matroska'], true],
    ['matroska', ['video/mp4'], false],
    ['avi', ['video/mp4', 'video/webm'], false],
    ['avi', [], true],
  ] as const)('of %s, where the upload was allowed %j: %s', (container, types, ok) => {
    const verdict = classifyHead({ kind: 'video', container }, types);
    if (ok) expect(verdict).toBeNull();
    else {
      expect(verdict).toMatchObject({ code: 'invalid_file', kind: 'content_type_mismatch' });
      expect(verdict?.message).toContain(`allowed for (${types.join(', ')}). Upload`);
    }
  });
});

describe('the verdict on what cannot be opened', () => {
  it('tells a file that was cut off from one that is damaged', () => {
    const cut = unreadable('[mov,mp4 @ 0x1] moov atom not found\n');
    expect(cut).toMatchObject({ ok: false, code: 'invalid_file', kind: 'unreadable' });
    expect(cut.message).toBe(
      'The file has no index: it was cut off before its end or is still being recorded. Export it again and upload the whole file.',
    );
    expect(unreadable('Invalid data').message).toMatch(/^The file cannot be opened: .+ Export it again\.$/);
  });
});

describe('the choice of the video track', () => {
  const chosen = (...video: ProbedVideo[]): number | undefined => {
    const choice = probe(video.map((each, index) => ({ ...each, index })));
    return 'ok' in choice ? undefined : choice.index;
  };
  const still = videoOf({ codec: 'png', times: timesOf(1) });

  it.each<[string, Partial<ProbedVideo>, Partial<ProbedVideo>]>([
    [
      'decodes before one that moves',
      { times: timesOf(1) },
      { sample: { frames: 0, interlaced: 0, topFirst: 0 }, isDefault: true, width: 4000 },
    ],
    ['moves before the default', {}, { times: timesOf(1), isDefault: true, width: 4000 }],
    ['is the default before the largest', { isDefault: true }, { width: 4000 }],
    ['is larger, whatever its shape', { width: 800, height: 900 }, { width: 1000, height: 700 }],
    ['is larger by a little', { width: 1282 }, {}],
  ])('takes the one that %s', (_what, better, worse) => {
    expect(chosen(videoOf(better), videoOf(worse))).toBe(0);
    expect(chosen(videoOf(worse), videoOf(better))).toBe(1);
  });

  it('takes the first of those that are alike', () => {
    expect(chosen(videoOf(), videoOf(), videoOf())).toBe(0);
  });

  it('takes no cover and no still, but a short film of stills', () => {
    expect(chosen(videoOf({ isAttachment: true }), videoOf({ width: 64 }))).toBe(1);
    expect(chosen({ ...still, isDefault: true }, videoOf({ width: 64 }))).toBe(1);
    expect(chosen({ ...still, times: timesOf(2) })).toBe(0);
    expect(chosen(videoOf({ times: timesOf(1) }))).toBe(0);
    for (const codec of 'mjpeg jpegls jpeg2000 gif bmp tiff webp ppm pgm pbm pam svg jpegxl'.split(' ')) {
      expect(chosen({ ...still, codec })).toBeUndefined();
    }
  });

  const empty = videoOf({ times: timesOf(0) });
  const silent = audioOf({ codec: null });
  it.each<[string, ProbedVideo[], ProbedAudio[], string, RegExp]>([
    ['nothing', [], [], 'no_video', /^The file has no moving picture\. Upload a file with a video track\.$/],
    ['sound', [], [audioOf()], 'no_video', /^The file has sound only\. Upload/],
    ['a still and sound', [still], [audioOf(), silent], 'no_video', /sound only/],
    [
      'sound of no use',
      [],
      [silent, silent],
      'unsupported_audio',
      /^The file has nothing but sound in a format/,
    ],
    ['no packet', [empty], [], 'no_video', /no moving picture/],
    [
      'pictures that it lacks',
      [{ ...empty, declaredPictures: 1 }],
      [silent],
      'corrupt',
      /cut off\. Upload it again/,
    ],
    [
      'pictures that it lacks beside none',
      [empty, { ...empty, declaredPictures: 9 }],
      [],
      'corrupt',
      /cut off/,
    ],
    ['none by its own word', [{ ...empty, declaredPictures: 0 }], [], 'no_video', /no moving picture/],
    [
      'a codec of no name',
      [videoOf({ codec: null })],
      [],
      'no_decodable_video',
      /cannot be decoded\. Upload it as H/,
    ],
    [
      'no picture that decodes',
      [videoOf({ sample: { frames: 0, interlaced: 0, topFirst: 0 } })],
      [],
      'corrupt',
      /^No picture of the h264 video can be decoded: the file is damaged\. Export it again\.$/,
    ],
  ])('says of a file with %s: %s', (_what, video, audio, kind, message) => {
    expect(probe(video, audio)).toMatchObject({
      ...{ ok: false, kind, message: expect.stringMatching(message) as unknown },
    });
  });

  it.each([
    [1, 1, true],
    [16_384, 16_384, true],
    [0, 720, false],
    [1280, 0, false],
    [16_385, 720, false],
    [1280, 16_385, false],
  ])('takes pictures of %d × %d: %s', (width, height, ok) => {
    const choice = probe([videoOf({ width, height })]);
    if (ok) expect(choice).toMatchObject({ width, height });
    else {
      expect(choice).toEqual({
        ...{ ok: false, code: 'invalid_file', kind: 'unsupported_dimensions' },
        message: `Pictures of ${width} × ${height} are not supported. Upload it with sides of 1 to 16384 pixels.`,
      });
    }
  });
});

describe('the verdict on what ffmpeg said', () => {
  const noDecoder = [
    'Decoder (codec prores_raw) not found for input stream #0:0',
    'Decoding requested, but no decoder found for: none',
  ];
  const damaged = [
    'Error while decoding stream #0:0: Invalid argument',
    '[in#0] Invalid data found when processing input',
    'Output file is empty, nothing was encoded',
  ];

  it('of a picture blames the source for its codec and its damage, and for nothing else', () => {
    for (const text of noDecoder) {
      expect(classifyVideoError(`a\n${text}\nb`)).toMatchObject({
        ...{ code: 'unsupported_codec', kind: 'no_decodable_video' },
        message: 'The video is in a format that cannot be decoded. Upload it as H.264.',
      });
    }
    for (const text of damaged) {
      expect(classifyVideoError(`a\n${text}\nb`)).toMatchObject({
        ...{ code: 'invalid_file', kind: 'corrupt' },
        message: 'The file is damaged: most of its pictures cannot be decoded. Export it again.',
      });
    }
    for (const text of ['', 'Killed', 'Cannot allocate memory', 'No space left on device']) {
      expect(classifyVideoError(text)).toBeNull();
    }
  });

  it('of sound the same, and for filters that its layout breaks', () => {
    const filters = ['Error initializing filter aresample', 'Error reinitializing filters!'];
    for (const text of [...noDecoder, ...damaged, ...filters]) {
      expect([text, isUndecodableSound(`a\n${text}\nb`)]).toEqual([text, true]);
    }
    for (const text of ['', 'Killed', 'Cannot allocate memory', 'Error opening filter']) {
      expect([text, isUndecodableSound(text)]).toEqual([text, false]);
    }
  });
});
