import { describe, expect, it } from '@jest/globals';
import { chooseAudio, endSeconds, planTrack, startSeconds, trackNames } from './audio-plan.ts';
import { type ProbedAudio } from './probe.ts';
import { audioOf, timesOf } from './testing/samples.ts';

const tracks = (...all: Partial<ProbedAudio>[]): ProbedAudio[] =>
  all.map((more, i) => audioOf({ index: i + 1, ...more }));
const choose = (...all: Partial<ProbedAudio>[]): number[] =>
  chooseAudio(tracks(...all)).chosen.map(({ index }) => index);
const notes = (...all: Partial<ProbedAudio>[]): string[][] =>
  chooseAudio(tracks(...all)).notes.map(({ code, text }) => [code, text]);

describe('the choice of sound', () => {
  it.each<[string, Partial<ProbedAudio>[], number[]]>([
    ['the first, unless one is the default', [{}, {}], [1]],
    ['the default', [{}, { isDefault: true }], [2]],
    ['no commentary, though it is the default', [{ isSpecial: true, isDefault: true }, {}], [2]],
    ['commentary when there is nothing else', [{ isSpecial: true }], [1]],
    ['one of each language', [{ language: 'eng' }, { language: 'fre' }, { language: 'en' }], [1, 2]],
    ['none that names no language beside one that does', [{ language: 'eng' }, {}, { language: 'und' }], [1]],
    ['one that names none, and languages', [{}, { language: 'eng' }], [1, 2]],
    ['by the order in the file, whatever the list', [{ index: 9 }, { index: 3 }], [3]],
    ['not without a codec', [{ codec: null }, {}], [2]],
    ['not without channels', [{ channels: 0 }, {}], [2]],
    ['not without a rate', [{ sampleRate: 0 }, {}], [2]],
    ['not without packets', [{ times: timesOf(0) }, {}], [2]],
    ['one packet will do', [{ times: timesOf(1), channels: 1, sampleRate: 1 }], [1]],
  ])('is %s', (_what, all, expected) => {
    expect(choose(...all)).toEqual(expected);
  });

  it('ends at eight', () => {
    const languages = ['en', 'fr', 'de', 'it', 'es', 'pt', 'ar', 'tr', 'ru', 'zh'];
    expect(choose(...languages.map((language) => ({ language })))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

describe('the report on sound', () => {
  it('names what is left out, and why', () => {
    expect(notes({ language: 'eng' }, { language: 'eng' })).toEqual([
      ['sound_not_offered', 'Sound track 2 is not offered: another one has its language, or it names none.'],
    ]);
    expect(notes({}, { times: timesOf(0) }, { codec: null, codecTag: 'mlpa' }, { channels: 0 })).toEqual([
      ['sound_empty', 'Sound track 2 holds no sound.'],
      ['sound_undecodable', 'Sound track 3 (mlpa) cannot be decoded.'],
      ['sound_undecodable', 'Sound track 4 (aac) cannot be decoded.'],
    ]);
  });

  it('says when none is left', () => {
    expect(notes({ codec: null, codecTag: 'mlpa' })).toEqual([
      [
        'sound_undecodable',
        'Sound track 1 (mlpa) cannot be decoded. The video plays silent; upload it with AAC sound to have it heard.',
      ],
    ]);
    expect(notes({})).toEqual([]);
  });
});

describe('the plan of a track', () => {
  const planOf = (more: Partial<ProbedAudio>, seconds = 4, segmentSeconds = 6) =>
    planTrack(audioOf(more), 'Name', seconds, segmentSeconds);

  it('has whole AAC frames', () => {
    expect(planOf({})).toEqual({
      ...{ stream: 1, name: 'Name', language: null, channels: 2, sampleRate: 48_000, bitrate: 128_000 },
      ...{ sourceChannels: 2, sourceLayout: 'stereo', copiedFromSeconds: null },
      ...{ segmentFrames: 281, frames: 188 },
    });
    // Just whole: 3 × 1024 samples.
    expect(planOf({}, 0.064).frames).toBe(3);
    expect(planOf({}, 0.0641).frames).toBe(4);
    expect(planOf({}, 0, 0)).toMatchObject({ frames: 1, segmentFrames: 1 });
  });

  it.each([
    [44_100, 44_100],
    [22_050, 44_100],
    [11_025, 44_100],
    [48_000, 48_000],
    [32_000, 48_000],
    [96_000, 48_000],
    [88_200, 48_000],
    [0, 48_000],
    [-1, 48_000],
  ])('of %d Hz has %d', (sampleRate, expected) => {
    expect(planOf({ sampleRate }).sampleRate).toBe(expected);
  });

  it('keeps one channel, and makes two of any more', () => {
    expect(planOf({ channels: 1, layout: null })).toMatchObject({
      ...{ channels: 1, bitrate: 80_000, sourceChannels: 1, sourceLayout: null },
    });
    expect(planOf({ channels: 6 })).toMatchObject({ channels: 2, bitrate: 128_000, sourceChannels: 6 });
  });

  it('begins and ends where its packets do', () => {
    const track = audioOf({ timeBase: [1, 100], times: { ...timesOf(9), firstTick: 50, endTick: 250 } });
    expect([startSeconds(track), endSeconds(track)]).toEqual([0.5, 2.5]);
    for (const codec of ['amr_nb', 'amr_wb']) {
      expect(planTrack({ ...track, codec }, 'x', 1, 6).copiedFromSeconds).toBe(0.5);
    }
    for (const codec of ['aac', null]) {
      expect(planTrack({ ...track, codec }, 'x', 1, 6).copiedFromSeconds).toBeNull();
    }
  });

  it.each([
    ['eng', 'en'],
    ['pt-br', 'pt-BR'],
    ['und', null],
    ['mul', null],
    ['zxx', null],
    ['mis', null],
    ['x-und', null],
    ['zh-und', null],
    ['en-a1', null],
    ['de-1996-1996', null],
    ['de-1stmis', 'de-1stmis'],
    ['english', null],
    ['1en', null],
    ['en_US', null],
    ['', null],
  ])('of language %j is %j', (language, expected) => {
    expect(planOf({ language }).language).toBe(expected);
  });
});

describe('the name of a track', () => {
  it('is its title, else its language, else said to be sound', () => {
    expect(trackNames(tracks({ title: 'Film', language: 'eng' }, { language: 'fre' }, {}))).toEqual([
      ...['Film', 'français', 'Audio'],
    ]);
  });

  it('comes once', () => {
    expect(trackNames(tracks({}, {}, { title: 'Audio' }, { title: 'Audio 2' }))).toEqual([
      ...['Audio', 'Audio 2', 'Audio 3', 'Audio 2 2'],
    ]);
  });

  it('can be quoted, and is no longer than a menu', () => {
    const title = ` "The\u0000 \u001fFilm\u007f"\n${'x'.repeat(90)}`;
    const [name = ''] = trackNames(tracks({ title }));
    expect(name).toHaveLength(80);
    expect(name).toMatch(/^The {3}Film {3}x+$/);
    expect(trackNames(tracks({ title: ' "\n' }))).toEqual(['Audio']);
  });
});
