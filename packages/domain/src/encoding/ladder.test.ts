import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { qualities, qualityHeight } from '@millrace/contract';
import { ladder, withRateControl } from './ladder.ts';

const shown = (width: number, height: number, max: (typeof qualities)[number] = '2160p'): string[] =>
  ladder({ width, height }, max).map((rung) => `${rung.quality} ${rung.width}x${rung.height}`);

describe('ladder', () => {
  it.each([
    [3840, 2160, ['360p 640x360', '720p 1280x720', '1080p 1920x1080', '1440p 2560x1440', '2160p 3840x2160']],
    [1918, 1078, ['360p 640x360', '720p 1280x720']],
    [1920, 800, ['360p 640x266', '720p 1280x534', '1080p 1920x800']],
    [1440, 1080, ['360p 480x360', '720p 960x720', '1080p 1440x1080']],
    [1080, 1920, ['360p 360x640', '720p 720x1280', '1080p 1080x1920']],
    [1080, 2520, ['360p 274x640', '720p 548x1280', '1080p 822x1920']],
    [1080, 1080, ['360p 360x360', '720p 720x720', '1080p 1080x1080']],
    [853, 479, ['360p 640x360']],
    [639, 359, ['360p 638x358']],
    [426, 240, ['360p 426x240']],
    [176, 144, ['360p 176x144']],
    [17, 1, ['360p 16x2']],
  ])('makes of %d x %d: %j [ENC-001, ENC-002, ENC-004]', (width, height, rungs) => {
    expect(shown(width, height)).toEqual(rungs);
  });

  it('stops at the highest quality of the plan [ENC-005]', () => {
    expect(shown(3840, 2160, '720p')).toEqual(['360p 640x360', '720p 1280x720']);
  });

  it('enlarges nothing, keeps the shape, fits the box, and has even sizes, for any size [ENC-003, VID-007]', () => {
    const side = fc.integer({ min: 1, max: 16_384 });
    fc.assert(
      fc.property(side, side, fc.constantFrom(...qualities), (width, height, max) => {
        const rungs = ladder({ width, height }, max);
        expect(rungs.length).toBeGreaterThan(0);
        for (const rung of rungs) {
          const short = qualityHeight(rung.quality);
          expect([rung.width % 2, rung.height % 2]).toEqual([0, 0]);
          expect(rung.width).toBeLessThanOrEqual(Math.max(2, width + 1));
          expect(rung.height).toBeLessThanOrEqual(Math.max(2, height + 1));
          expect(Math.min(rung.width, rung.height)).toBeLessThanOrEqual(short);
          expect(Math.max(rung.width, rung.height)).toBeLessThanOrEqual(Math.ceil((short * 16) / 9));
          expect(qualityHeight(rung.quality)).toBeLessThanOrEqual(qualityHeight(max));
          // Evening moves a side by a pixel at most.
          if (Math.min(rung.width, rung.height) > 2) {
            expect(Math.abs(rung.width - (rung.height * width) / height)).toBeLessThanOrEqual(
              1 + width / height,
            );
          }
        }
      }),
    );
  });
});

describe('withRateControl', () => {
  const rung = (quality: (typeof qualities)[number], width: number, height: number, rate = 30) =>
    withRateControl({ quality, width, height }, [rate, 1]);

  // Rec. ITU-T H.264 table A-1: the lowest level that the size and the speed fit.
  it.each([
    ['360p', 640, 360, 30, 30],
    ['720p', 1280, 720, 30, 31],
    ['720p', 1280, 720, 60, 32],
    ['1080p', 1920, 1080, 30, 40],
    ['1080p', 1920, 1080, 60, 42],
    ['1440p', 2560, 1440, 30, 50],
    ['2160p', 3840, 2160, 30, 51],
    ['2160p', 3840, 2160, 60, 52],
  ] as const)('%s of %d x %d at %d a second has level %d', (quality, width, height, rate, level) => {
    expect(rung(quality, width, height, rate).level).toBe(level);
  });

  // The highest speed of a size that a level holds, and one more.
  it.each([
    ['360p', 128, 96, 62, 11, 12],
    ['360p', 320, 240, 20, 12, 13],
    ['360p', 352, 288, 30, 13, 21],
    ['360p', 352, 288, 50, 21, 22],
    ['360p', 352, 288, 51, 22, 30],
    ['360p', 352, 480, 30, 21, 30],
    ['360p', 720, 576, 12, 22, 30],
    ['360p', 720, 576, 25, 30, 31],
    ['720p', 1280, 720, 30, 31, 32],
    ['720p', 1280, 720, 60, 32, 40],
    ['1080p', 1920, 1080, 30, 40, 42],
    ['1080p', 1920, 1080, 64, 42, 50],
    ['1440p', 2560, 1440, 40, 50, 51],
    ['2160p', 3840, 2160, 30, 51, 52],
    ['2160p', 3840, 2160, 64, 52, 60],
    ['2160p', 3840, 2160, 128, 60, 61],
    ['2160p', 3840, 2160, 257, 61, 62],
  ] as const)(
    '%s of %d x %d at %d a second has level %d, and faster %d',
    (quality, width, height, rate, level, next) => {
      expect([
        rung(quality, width, height, rate).level,
        rung(quality, width, height, rate + 1).level,
      ]).toEqual([level, next]);
    },
  );

  it('goes up a level for the buffer, the frame or the longest side alone', () => {
    expect(rung('2160p', 352, 288, 30)).toMatchObject({ level: 20 });
    expect(rung('720p', 720, 640, 10).level).toBe(31);
    expect([rung('2160p', 4096, 32, 30).level, rung('2160p', 4112, 32, 30).level]).toEqual([40, 42]);
  });

  it('counts whole macroblocks, and the longer side', () => {
    expect([rung('360p', 352, 288, 30).level, rung('360p', 352, 289, 30).level]).toEqual([13, 21]);
    expect([rung('360p', 352, 288, 30).level, rung('360p', 353, 288, 30).level]).toEqual([13, 21]);
    // 57 macroblocks in a row are too long for a frame of 396.
    expect([rung('360p', 896, 16, 1).level, rung('360p', 912, 16, 1).level]).toEqual([11, 21]);
    expect([rung('360p', 16, 896, 1).level, rung('360p', 16, 912, 1).level]).toEqual([11, 21]);
  });

  it.each([
    ['360p', 900_000],
    ['720p', 3_200_000],
    ['1080p', 5_800_000],
    ['1440p', 10_000_000],
    ['2160p', 18_000_000],
  ] as const)('%s may use %d bit/s', (quality, maxrate) => {
    const height = qualityHeight(quality);
    expect(rung(quality, (height * 16) / 9, height)).toMatchObject({ maxrate, bufsize: maxrate * 1.5 });
    // By area to the power of 3/4 and speed to that of 3/5, no less than half and no more than the box.
    expect(rung(quality, (height * 8) / 9, height).maxrate).toBe(Math.round(maxrate * 0.5 ** 0.75));
    expect(rung(quality, (height * 16) / 9, height, 60).maxrate).toBe(Math.round(maxrate * 2 ** 0.6));
    expect(rung(quality, (height * 16) / 9, height, 15).maxrate).toBe(Math.round(maxrate * 0.5 ** 0.6));
    expect(rung(quality, (height * 16) / 9, height, 1).maxrate).toBe(Math.round(maxrate * 0.5 ** 0.6));
    expect(rung(quality, (height * 32) / 9, height).maxrate).toBe(maxrate);
  });

  it('gives less to smaller pictures, more to faster ones, and a buffer of a second and a half', () => {
    const wide = rung('1080p', 1920, 1080);
    expect(rung('1080p', 1920, 800).maxrate).toBeLessThan(wide.maxrate);
    expect(rung('1080p', 1920, 1080, 60).maxrate).toBeGreaterThan(wide.maxrate);
    expect(wide).toMatchObject({ crf: 23, maxrate: 5_800_000, bufsize: 8_700_000 });
    expect(rung('360p', 16, 16).maxrate).toBe(150_000);
  });
});
