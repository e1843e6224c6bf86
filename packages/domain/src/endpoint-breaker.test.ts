import { describe, expect, it } from '@jest/globals';
import { breakerPause } from './endpoint-breaker.ts';

describe('the breaker of an endpoint', () => {
  it('stays closed for four failures in a row and opens at the fifth', () => {
    expect([1, 2, 3, 4].map((failures) => breakerPause(failures, 10_000))).toEqual([null, null, null, null]);
    expect(breakerPause(5, 1)).toBe(2_000);
  });

  it('waits longer after each failed probe, half a minute at most', () => {
    expect([5, 6, 7, 8, 9, 500].map((failures) => breakerPause(failures, 1))).toEqual([
      2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
  });

  it('gives a probe that hung a pause three times as long', () => {
    expect(breakerPause(5, 4_000)).toBe(12_000);
    expect(breakerPause(5, 10_000)).toBe(30_000);
  });
});
