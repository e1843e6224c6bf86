import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Claimant, shareOut } from './assigner.ts';

const partitionsOf = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const share = (count: number, claimants: Record<string, number[]>): Record<string, number[]> =>
  Object.fromEntries(
    shareOut(
      partitionsOf(count),
      Object.entries(claimants).map(([id, owned]): Claimant => ({ id, owned })),
    ),
  );

describe('shareOut', () => {
  it('gives a newcomer its share, and leaves the others all that they may keep', () => {
    expect(share(6, { a: [0, 1, 2], b: [3, 4, 5], c: [] })).toEqual({ a: [0, 1], b: [3, 4], c: [2, 5] });
    expect(share(4, { a: [0, 1, 2, 3], b: [] })).toEqual({ a: [0, 1], b: [2, 3] });
  });

  it('gives to those who stay what one who leaves had', () => {
    expect(share(6, { a: [0, 1], c: [2, 5] })).toEqual({ a: [0, 1, 3], c: [2, 4, 5] });
  });

  it('moves nothing when nothing has changed', () => {
    expect(share(5, { a: [4, 1], b: [0, 2, 3] })).toEqual({ a: [1, 4], b: [0, 2, 3] });
  });

  it('leaves members without a share when there are more of them than partitions', () => {
    expect(share(1, { a: [], b: [0], c: [] })).toEqual({ b: [0], a: [], c: [] });
  });

  it('gives each partition to exactly one member, evenly, whatever is claimed', () => {
    const claims = fc.array(fc.uniqueArray(fc.integer({ min: -1, max: 14 })), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 12 }), claims, (count, owned) => {
        const claimants = owned.map((own, i) => ({ id: `m${i}`, owned: own }));
        const shares = [...shareOut(partitionsOf(count), claimants).values()];
        expect(shares.flat().sort((a, b) => a - b)).toEqual(partitionsOf(count));
        const sizes = shares.map((part) => part.length);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      }),
    );
  });
});
