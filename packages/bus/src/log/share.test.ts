import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { shareOf } from './share.ts';

describe('shareOf', () => {
  it('gives equal shares, the remainder to those who joined first', () => {
    expect(['a', 'b', 'c'].map((id) => shareOf(id, ['a', 'b', 'c'], 8))).toEqual([3, 3, 2]);
    expect(['a', 'b', 'c'].map((id) => shareOf(id, ['a', 'b', 'c'], 2))).toEqual([1, 1, 0]);
    expect(shareOf('stranger', ['a'], 8)).toBe(0);
  });

  it('gives out every partition once, and never grows by a newcomer', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 50 }), (count, partitions) => {
        const members = Array.from({ length: count }, (_, i) => `m${i}`);
        const shares = members.map((id) => shareOf(id, members, partitions));
        const after = members.map((id) => shareOf(id, [...members, 'new'], partitions));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(partitions);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        expect(after.every((share, i) => share <= (shares[i] ?? 0))).toBe(true);
      }),
    );
  });
});
