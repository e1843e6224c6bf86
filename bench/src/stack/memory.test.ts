import { describe, expect, it } from '@jest/globals';
import { growthOf } from './memory.ts';

const samples = (bytes: readonly number[]): { at: number; bytes: number }[] =>
  bytes.map((each, n) => ({ at: 10 * n, bytes: each }));

describe('growthOf', () => {
  it('sets the last third beside the first, and tells the slope', () => {
    expect(growthOf(samples([100, 110, 120, 130, 140, 150, 160, 170, 180]))).toEqual({
      firstBytes: 110,
      lastBytes: 170,
      ratio: 170 / 110,
      bytesPerMinute: 60,
    });
  });

  it('takes single heights for what they are', () => {
    const { ratio, bytesPerMinute } = growthOf(samples([100, 900, 100, 100, 100, 100, 100, 100, 900]));
    expect([ratio, bytesPerMinute]).toEqual([1, 0]);
  });
});
