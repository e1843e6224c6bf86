import { describe, expect, it } from '@jest/globals';
import { breakerPause } from './endpoint-breaker.ts';

describe('breakerPause', () => {
  it('leaves an endpoint alone only from the fifth failure in a row on', () => {
    expect([0, 1, 2, 3, 4].map((failures) => breakerPause(failures, 10_000))).toEqual(Array(5).fill(null));
    expect(breakerPause(5, 0)).not.toBeNull();
  });

  it('grows from 2 s to half a minute, however many failures there were', () => {
    expect([5, 6, 7, 8, 9, 10, 1_000_000].map((failures) => breakerPause(failures, 1))).toEqual([
      ...[2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000],
    ]);
  });

  it('is three times as long as the attempt hung, half a minute at most', () => {
    expect(breakerPause(5, 5_000)).toBe(15_000);
    expect(breakerPause(5, 10_000)).toBe(30_000);
    expect(breakerPause(5, 60_000)).toBe(30_000);
  });
});
