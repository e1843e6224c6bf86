import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { frameGrid } from './frame-grid.ts';
import { type Rational } from './types.ts';

/** Times of pictures at a rate, rounded as a container does. */
const ticksAt = (rate: number, count: number, perSecond: number): number[] =>
  Array.from({ length: count }, (_, n) => Math.round((n / rate) * perSecond));
const gridOf = (ticks: number[], perSecond: number, declared: Rational[] = [], fieldPackets = false) =>
  frameGrid({ timeBase: [1, perSecond], declaredRates: declared, fieldPackets }, ticks, 0);

describe('frameGrid', () => {
  it.each([
    ['25 in milliseconds', 25, 1000, [25, 1]],
    ['30 in milliseconds', 30, 1000, [30, 1]],
    ['29.97 in milliseconds', 30_000 / 1001, 1000, [30_000, 1001]],
    ['23.976', 24_000 / 1001, 90_000, [24_000, 1001]],
    ['59.94', 60_000 / 1001, 90_000, [60_000, 1001]],
    ['60', 60, 15_360, [60, 1]],
    ['10', 10, 600, [10, 1]],
    ['12.5', 12.5, 1000, [25, 2]],
    ['1', 1, 1000, [1, 1]],
    // Above 60: a whole fraction.
    ['120', 120, 15_360, [60, 1]],
    ['119.88', 120_000 / 1001, 120_000, [60_000, 1001]],
    ['100', 100, 90_000, [50, 1]],
    ['240', 240, 15_360, [60, 1]],
    ['144', 144, 14_400, [48, 1]],
    ['90', 90, 90_000, [45, 1]],
  ] as const)('keeps %s [ENC-006]', (_, rate, perSecond, expected) => {
    const grid = gridOf(ticksAt(rate, 600, perSecond), perSecond);
    expect(grid).toMatchObject({ rate: expected, variable: false });
  });

  const whole = [
    ...[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 18, 20, 24, 25, 30, 48, 50, 60, 72, 75, 90, 96, 100, 120, 144],
    ...[200, 240],
  ].map((n): Rational => [n, 1]);
  const broken = [15_000, 24_000, 30_000, 48_000, 60_000, 120_000, 240_000].map((n): Rational => [n, 1001]);
  it.each([...whole, ...broken, [25, 2] as Rational])(
    'tells %d/%d from what rounding makes of it',
    (num, den) => {
      const perSecond = num / den > 100 ? 10_000 : 1_000;
      const { sourceRate, variable } = gridOf(ticksAt(num / den, 600, perSecond), perSecond);
      expect({ sourceRate, variable }).toEqual({ sourceRate: [num, den], variable: false });
    },
  );

  it.each<[Rational, Rational]>([
    [
      [606, 10],
      [303, 5],
    ],
    [
      [60_600, 999],
      [10_100, 333],
    ],
    [
      [1, 3],
      [1, 1],
    ],
    [
      [2, 3],
      [4, 3],
    ],
    [
      [1, 1],
      [1, 1],
    ],
    [
      [1000, 1],
      [1000, 17],
    ],
  ])('brings the declared rate %j of a single picture to %j', (declared, rate) => {
    expect(gridOf([0], 1000, [declared]).rate).toEqual(rate);
  });

  it('believes no declared rate above a thousand', () => {
    expect(
      gridOf([0], 1000, [
        [1001, 1],
        [24, 1],
      ]).sourceRate,
    ).toEqual([24, 1]);
    expect(
      gridOf([0], 1000, [
        [1000, 1],
        [24, 1],
      ]).sourceRate,
    ).toEqual([1000, 1]);
  });

  it('takes for a single picture its duration in ticks of any length', () => {
    const one = (timeBase: Rational, duration: number) =>
      frameGrid({ timeBase, declaredRates: [], fieldPackets: false }, [7], duration).sourceRate;
    expect([one([1, 90_000], 3_003), one([1001, 30_000], 1), one([1, 1000], 1)]).toEqual([
      [30_000, 1001],
      [30_000, 1001],
      [1000, 1],
    ]);
  });

  it('takes times from wherever they begin', () => {
    const ticks = ticksAt(25, 100, 1000).map((tick) => tick + 3_600_013);
    expect(gridOf(ticks, 1000)).toEqual({ rate: [25, 1], sourceRate: [25, 1], variable: false });
  });

  it('takes the closest of the usual rates that a short clip cannot tell apart', () => {
    expect(gridOf(ticksAt(24, 30, 90_000), 90_000).rate).toEqual([24, 1]);
    expect(gridOf(ticksAt(24_000 / 1001, 30, 90_000), 90_000).rate).toEqual([24_000, 1001]);
    // An unusual one is believed only where no usual one fits.
    expect(gridOf(ticksAt(30, 5, 1000), 1000, [[2_999, 100]]).rate).toEqual([30, 1]);
    expect(gridOf(ticksAt(27, 100, 90_000), 90_000).rate).toEqual([27, 1]);
  });

  it('goes by the first field of each picture alone', () => {
    const ticks = ticksAt(30, 100, 90_000).flatMap((tick, n) => [tick, tick + 900 + ((n * 397) % 900)]);
    expect(gridOf(ticks, 90_000, [], true)).toEqual({ rate: [30, 1], sourceRate: [30, 1], variable: false });
  });

  it('takes an unusual rate from the mean, wherever times begin and whatever a tick is', () => {
    const later = ticksAt(27, 100, 90_000).map((tick) => tick + 7_777_777);
    expect(gridOf(later, 90_000)).toMatchObject({ rate: [27, 1], variable: false });
    const ticks = Array.from({ length: 100 }, (_, n) => n * 1_000);
    const video = { timeBase: [2, 54_000], declaredRates: [], fieldPackets: false } as const;
    expect(frameGrid(video, ticks, 0)).toMatchObject({ rate: [27, 1], variable: false });
  });

  it('believes two pictures more than the header', () => {
    expect(gridOf([0, 100], 1000, [[25, 1]]).rate).toEqual([10, 1]);
  });

  it.each<[Rational, number]>([
    [[239, 1], 240],
    [[24_000, 1003], 24_000 / 1001],
  ])('does not take the declared %j for a usual rate', (declared, rate) => {
    const { sourceRate, variable } = gridOf(ticksAt(rate, 5, 10_000), 10_000, [declared]);
    expect([sourceRate.join('/') === declared.join('/'), variable]).toEqual([false, false]);
  });

  it('allows for times that were cut off and not rounded', () => {
    const ticks = Array.from({ length: 600 }, (_, n) => Math.floor((n * 1001) / 120));
    expect(gridOf(ticks, 1000)).toMatchObject({ sourceRate: [120_000, 1001], variable: false });
  });

  it('lets no two pictures share a place, however near they are to it', () => {
    expect(gridOf([0, 5, 6, 11, 16, 21], 1000, [[190, 1]]).variable).toBe(true);
  });

  it('looks for a variable rate up to 300, and takes 60 when none keeps the pictures apart', () => {
    const pairs = (apart: number): number[] =>
      Array.from({ length: 60 }, (_, n) => Math.floor(n / 2) * 100 + (n % 2) * apart);
    expect(gridOf(pairs(1), 1000, [[700, 1]])).toEqual({
      rate: [60, 1],
      sourceRate: [60, 1],
      variable: true,
    });
    expect(gridOf(pairs(2), 1000, [[300, 1]])).toMatchObject({ sourceRate: [300, 1], variable: true });
  });

  it('lets one picture in two hundred be lost', () => {
    const ticks = (count: number): number[] =>
      Array.from({ length: count }, (_, n) => (n === 100 ? 99 * 40 + 7 : n * 40));
    expect(gridOf(ticks(200), 1000)).toMatchObject({ sourceRate: [25, 1], variable: true });
    expect(gridOf(ticks(199), 1000).sourceRate).not.toEqual([25, 1]);
  });

  it.each([0.15, 0.35])('counts places from the first picture: %d of one later', (part) => {
    const ticks = ticksAt(25, 400, 90_000).map((tick, n) => tick + (n % 5 === 2 ? 1_080 : 0) + part * 3_600);
    expect(gridOf(ticks, 90_000)).toMatchObject({ rate: [25, 1], variable: true });
  });

  it('finds for a variable rate the usual one that is nearest to the mean', () => {
    const jitter = (rate: number, share: number): number[] =>
      ticksAt(rate, 400, 90_000).map(
        (tick, n) => tick + (n % 5 === 2 ? Math.round((90_000 / rate) * share) : 0),
      );
    expect(gridOf(jitter(25, 0.3), 90_000)).toMatchObject({ rate: [25, 1], variable: true });
    expect(gridOf(jitter(30, 0.3), 90_000)).toMatchObject({ rate: [30, 1], variable: true });
    // Two pictures in five share a frame at 25: the next rates are tried.
    expect(gridOf(jitter(25, 0.6), 90_000)).toMatchObject({ variable: true });
    expect(gridOf(jitter(25, 0.6), 90_000).rate).not.toEqual([25, 1]);
  });

  it('believes the declared rate where a short clip cannot tell', () => {
    expect(gridOf(ticksAt(30, 5, 1000), 1000, [[30_000, 1001]]).rate).toEqual([30_000, 1001]);
  });

  it('does not believe a declared rate that the times deny', () => {
    expect(gridOf(ticksAt(25, 100, 90_000), 90_000, [[90_000, 1]]).rate).toEqual([25, 1]);
    expect(gridOf(ticksAt(25, 100, 90_000), 90_000, [[15, 1]]).rate).toEqual([25, 1]);
  });

  it('counts dropped pictures as gaps, not as another rate', () => {
    const ticks = ticksAt(30, 300, 90_000).filter((_, n) => n % 7 !== 3 && (n < 100 || n > 130));
    expect(gridOf(ticks, 90_000)).toMatchObject({ rate: [30, 1], variable: false });
  });

  it('counts two packets of fields as one picture', () => {
    const grid = gridOf(ticksAt(50, 100, 90_000), 90_000, [], true);
    expect(grid.rate).toEqual([25, 1]);
  });

  it('repeats pictures under one a second', () => {
    expect(gridOf(ticksAt(0.25, 10, 1000), 1000).rate).toEqual([1, 1]);
  });

  it('gives a single picture the declared rate, else what its duration says', () => {
    expect(gridOf([0], 1000, [[24, 1]]).rate).toEqual([24, 1]);
    expect(frameGrid({ timeBase: [1, 1000], declaredRates: [], fieldPackets: false }, [0], 40).rate).toEqual([
      25, 1,
    ]);
    expect(gridOf([0], 1000).rate).toEqual([25, 1]);
  });

  it('makes a variable rate constant, with (almost) no picture lost [ENC-007]', () => {
    // A phone: 30 a second, then 24, with times that jitter.
    const ticks = Array.from({ length: 300 }, (_, n) => {
      const seconds = n < 150 ? n / 30 : 5 + (n - 150) / 24;
      return Math.round(seconds * 90_000 + ((n * 7919) % 600));
    });
    const grid = gridOf(ticks, 90_000);
    expect(grid.variable).toBe(true);
    const rate = grid.rate[0] / grid.rate[1];
    const places = ticks.map((tick) => Math.round((tick / 90_000) * rate));
    expect(new Set(places).size).toBeGreaterThanOrEqual(298);
    expect(rate).toBeLessThanOrEqual(60);
  });

  it('has a rate from 1 to 60.6 for any times', () => {
    const times = fc.uniqueArray(fc.nat(1e6), { minLength: 1, maxLength: 60 });
    const rates = fc.array(fc.tuple(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: 1e6 })));
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 1e6 }), rates, (ticks, perSecond, declared) => {
        const { rate } = gridOf(
          ticks.sort((a, b) => a - b),
          perSecond,
          declared,
        );
        const value = rate[0] / rate[1];
        expect(Number.isSafeInteger(rate[0]) && Number.isSafeInteger(rate[1])).toBe(true);
        expect(value).toBeGreaterThanOrEqual(1);
        expect(value).toBeLessThanOrEqual(60.6);
      }),
    );
  });
});
