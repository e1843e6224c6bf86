import { describe, expect, it } from '@jest/globals';
import { playbackTokenSeconds } from './token-lifetime.ts';

describe('playbackTokenSeconds', () => {
  it.each([
    [0, 3_600],
    [1, 3_601],
    [90_500, 3_691],
    [7_200_000, 10_800],
    [86_400_000, 86_400],
  ])('of a video of %d ms is %d s [PBT-203]', (durationMs, seconds) => {
    expect(playbackTokenSeconds(durationMs)).toBe(seconds);
  });
});
