import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { joinSegments, type WatchedSegment } from './watched-segments.ts';

const nothing = Buffer.alloc(0);
const segment = (index: number, ms = 6_000): WatchedSegment => ({ index, ms });

describe('joinSegments', () => {
  it('counts each segment once, in one report or in several', () => {
    const first = joinSegments(nothing, [segment(0), segment(9, 4_000), segment(0)]);
    expect([first.newMs, [...first.bitmap]]).toEqual([10_000, [0b1, 0b10]]);
    const second = joinSegments(first.bitmap, [segment(9, 4_000), segment(1)]);
    expect([second.newMs, [...second.bitmap]]).toEqual([6_000, [0b11, 0b10]]);
    expect(joinSegments(second.bitmap, [segment(0), segment(1), segment(9)]).newMs).toBe(0);
  });

  it('adds up to the same in any order and any number of reports', () => {
    const watched = fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 50 });
    fc.assert(
      fc.property(fc.array(watched, { maxLength: 6 }), (reports) => {
        let bitmap: Buffer = nothing;
        let total = 0;
        for (const report of reports) {
          const joined = joinSegments(
            bitmap,
            report.map((index) => segment(index, 10)),
          );
          bitmap = joined.bitmap;
          total += joined.newMs;
        }
        expect(total).toBe(10 * new Set(reports.flat()).size);
      }),
    );
  });

  it.each([-1, 1.5, Number.NaN, 100_000, 2 ** 31])('leaves the impossible index %d out', (index) => {
    expect(joinSegments(nothing, [segment(index)])).toEqual({ bitmap: nothing, newMs: 0 });
  });

  it('takes no negative time', () => {
    expect(joinSegments(nothing, [segment(0, -5)]).newMs).toBe(0);
  });
});
