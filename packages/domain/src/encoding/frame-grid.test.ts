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
