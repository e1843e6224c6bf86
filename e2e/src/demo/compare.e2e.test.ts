import { describe, expect, it } from '@jest/globals';
import { comparePictures, compareSound, playedSpans, promisedRate, spanOf } from './compare.ts';
import { promisedLadder } from './ladder.ts';
import { bytesPerPicture, loudnessBlock, type Pictures, type Sound } from './media.ts';

/** A moving picture: each shows another scene of the film. */
function film(scenes: readonly number[], rate: number, start = 0): Pictures {
  const pixels = Buffer.alloc(scenes.length * bytesPerPicture);
  for (const [i, scene] of scenes.entries()) {
    for (let k = 0; k < bytesPerPicture; k++) {
      pixels[i * bytesPerPicture + k] = 128 + 120 * Math.sin(scene / 9 + k / 40);
    }
  }
  const times = scenes.map((_, i) => start + i / rate);
  return { times, end: start + scenes.length / rate, pixels, jumps: false, complaints: '' };
}
const scenes = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('comparing pictures', () => {
  const source = film(scenes(0, 90), 30, 5);
  const compare = (shown: readonly number[], rate = 30): number =>
    comparePictures(source, film(shown, rate), { start: 5, rate, coloursKept: true });

  it('takes the same film, one frame early or late, at another rate', () => {
    expect(compare(scenes(0, 90))).toBe(0);
    expect(compare(scenes(1, 91))).toBeLessThan(1);
    expect(compare(scenes(-1, 89))).toBeLessThan(1);
    expect(
      compare(
        scenes(0, 45).map((scene) => 2 * scene),
        15,
      ),
    ).toBeLessThan(12);
  });

  it.each([
    ['late', scenes(-4, 86), 'the pictures from 0.00 s on are 4 frames late'],
    ['early', scenes(3, 93), 'the pictures from 0.00 s on are 3 frames early'],
    [
      'late from its second segment on',
      [...scenes(0, 60), ...scenes(55, 85)],
      'the pictures from 2.00 s on are 5 frames late',
    ],
    [
      'in another order',
      [...scenes(0, 30), ...scenes(60, 90), ...scenes(30, 60)],
      'the pictures from 1.00 s on are not the source',
    ],
    ['frozen', [...scenes(0, 30), ...scenes(0, 60).fill(30)], 'the pictures from 1.00 s on'],
    ['another film', scenes(0, 90).map((scene) => scene * 3 + 40), 'the pictures from 0.00 s on'],
  ])('refuses one that is %s', (_, shown, problem) => {
    expect(() => compare(shown)).toThrow(problem);
  });

  it('refuses one that stands on its head', () => {
    const flipped = film(scenes(0, 90), 30);
    const row = bytesPerPicture / 9;
    for (let at = 0; at < flipped.pixels.length; at += bytesPerPicture) {
      const rows = Array.from({ length: 9 }, (_, i) =>
        Buffer.from(flipped.pixels.subarray(at + i * row, at + (i + 1) * row)),
      );
      Buffer.concat(rows.reverse()).copy(flipped.pixels, at);
    }
    expect(() => comparePictures(source, flipped, { start: 5, rate: 30, coloursKept: true })).toThrow(
      'the pictures from 0.00 s on',
    );
  });
});

/** Speech, more or less: it becomes loud and quiet. */
const sound = (from: number, seconds: number, start = 0): Sound => ({
  start,
  seconds,
  loudness: Array.from({ length: Math.round(seconds / loudnessBlock) }, (_, i) => {
    const at = from + i * loudnessBlock;
    return -30 + 12 * Math.sin(at * 5) + 8 * Math.sin(at * 13.7);
  }),
  complaints: '',
});

describe('comparing sound', () => {
  it('takes what nobody hears to be out of step', () => {
    expect(() => compareSound(sound(0, 12, 3), sound(0, 12), 3)).not.toThrow();
    expect(() => compareSound(sound(0, 12, 3), sound(0.04, 11), 3)).not.toThrow();
    // Cut at presentation zero, one second into the sound.
    expect(() => compareSound(sound(0, 12, 3), sound(1, 11), 4)).not.toThrow();
  });

  it.each([
    ['late', sound(-0.1, 12), 'the sound from 0.0 s on is 100 ms late'],
    ['early', sound(0.2, 12), 'the sound from 0.0 s on is 200 ms early'],
    ['silent', { ...sound(0, 12), loudness: sound(0, 12).loudness.fill(-60) }, 'is not the source'],
    [
      'drifting',
      { ...sound(0, 12), loudness: [...sound(0, 6).loudness, ...sound(5.85, 6).loudness] },
      'the sound from 5.0 s on is',
    ],
  ])('refuses one that is %s', (_, encoded, problem) => {
    expect(() => compareSound(sound(0, 12), encoded, 0)).toThrow(problem);
  });
});

describe('what plays of a source', () => {
  it('is counted within one frame', () => {
    const spans = playedSpans(film(scenes(0, 90), 30), []);
    expect([89, 90, 91].map((frames) => spanOf(spans, frames, 30))).toEqual([...spans, ...spans, ...spans]);
    expect(() => spanOf(spans, 88, 30)).toThrow('88 pictures at 30, the source plays 90');
    expect(() => spanOf(spans, 92, 30)).toThrow('92 pictures at 30, the source plays 90');
  });

  it('includes sound that outlives the picture, and may include sound that leads it', () => {
    const picture = film(scenes(0, 30), 30, 1);
    expect(playedSpans(picture, [sound(0, 1.1, 1)])).toEqual([{ start: 1, end: 2 }]);
    expect(playedSpans(picture, [sound(0, 4, 1)])).toEqual([{ start: 1, end: 5 }]);
    expect(playedSpans(picture, [sound(0, 2, 0)])).toEqual([
      { start: 1, end: 2 },
      { start: 0, end: 2 },
    ]);
  });

  it.each([
    ['25', scenes(0, 50).map((i) => i / 25), 25, 24],
    ['29.97 with rounded times', scenes(0, 300).map((i) => Math.round((i * 1001) / 30) / 1000), 29.97, 30.1],
    ['10 with a gap', [...scenes(0, 20), ...scenes(25, 60)].map((i) => i / 10), 10, 9],
    ['120, halved', scenes(0, 120).map((i) => i / 120), 60, 120],
    ['one picture in two seconds, repeated', scenes(0, 5).map((i) => i * 2), 1, 0.5],
  ])('has a frame rate: %s', (_, times, right, wrong) => {
    const { min, max } = promisedRate({ ...film([], 1), times, end: (times.at(-1) ?? 0) + 0.04 });
    expect(right >= min && right <= max).toBe(true);
    expect(wrong >= min && wrong <= max).toBe(false);
  });

  it('has no one rate when it varies: from the mean up to 60', () => {
    const times = scenes(0, 40).map((i) => i * 0.033 + (i % 3) * 0.012);
    const { min, max } = promisedRate({ ...film([], 1), times, end: 1.4 });
    expect([20, 30, 60, 61].map((rate) => rate >= min && rate <= max)).toEqual([false, true, true, false]);
  });
});

describe('the ladder', () => {
  it.each([
    [1920, 1080, '360p 640×360, 720p 1280×720, 1080p 1920×1080'],
    [1920, 800, '360p 640×266, 720p 1280×534, 1080p 1920×800'],
    [1080, 1920, '360p 360×640, 720p 720×1280, 1080p 1080×1920'],
    [1918, 1078, '360p 640×360, 720p 1280×720'],
    [1440, 1080, '360p 480×360, 720p 960×720, 1080p 1440×1080'],
    [176, 144, '360p 176×144'],
  ])('of %i×%i', (width, height, rungs) => {
    const seen = promisedLadder({ width, height });
    expect(seen.map((rung) => `${rung.quality} ${rung.width}×${rung.height}`).join(', ')).toBe(rungs);
  });
});
