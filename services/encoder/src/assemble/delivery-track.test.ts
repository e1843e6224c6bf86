import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type StoredTrack } from '../tasks/outputs.ts';
import { bandwidths, joinTrack, mergeSliver } from './delivery-track.ts';

const chunk = (over: Partial<StoredTrack> = {}): StoredTrack => ({
  kind: 'rendition',
  index: 0,
  key: 'videos/v/a/video-0.mp4',
  bytes: 3_700,
  init: [0, 700],
  initHash: 'h',
  codec: 'avc1.64001e',
  timescale: 1000,
  startTicks: 0,
  segments: [
    [700, 2_000, 6_000, 500, 180],
    [2_700, 1_000, 3_000, 300, 90],
  ],
  ...over,
});

describe('joinTrack', () => {
  it('puts chunks behind one another, each an object', () => {
    const second = chunk({ key: 'videos/v/b/video-1.mp4', startTicks: 9_000 });
    expect(joinTrack('360p', [chunk(), second])).toEqual({
      timescale: 1000,
      objects: ['videos/v/a/video-0.mp4', 'videos/v/b/video-1.mp4'],
      init: [0, 0, 700],
      segments: [
        [0, 700, 2_000, 6_000, 500],
        [0, 2_700, 1_000, 3_000, 300],
        [1, 700, 2_000, 6_000, 500],
        [1, 2_700, 1_000, 3_000, 300],
      ],
      codec: 'avc1.64001e',
      peakBandwidth: 2_667,
      averageBandwidth: 2_667,
    });
  });

  it.each([
    ['another init segment', [chunk(), chunk({ startTicks: 9_000, initHash: 'other' })]],
    ['begins at tick 9001, not 9000', [chunk(), chunk({ startTicks: 9_001 })]],
    ['begins at tick 1, not 0', [chunk({ startTicks: 1 })]],
    ['has no output', []],
  ])('refuses chunks that do not fit: %s', (message, chunks) => {
    expect(() => joinTrack('360p', chunks)).toThrow(message);
  });
});

describe('mergeSliver', () => {
  it('joins a last sliver of sound with the segment before it', () => {
    const track = joinTrack('Audio', [
      chunk({
        segments: [
          [700, 2_000, 6_000, 0, 281],
          [2_700, 1_000, 499, 0, 24],
        ],
      }),
    ]);
    expect(mergeSliver(track).segments).toEqual([[0, 700, 3_000, 6_499, 0]]);
  });

  it('leaves a longer last segment, and an only one', () => {
    const whole = joinTrack('Audio', [chunk()]);
    expect(mergeSliver(whole)).toEqual(whole);
    const only = joinTrack('Audio', [chunk({ segments: [[700, 100, 40, 0, 2]] })]);
    expect(mergeSliver(only)).toEqual(only);
  });
});

describe('bandwidths', () => {
  const of = (...segments: [bytes: number, ticks: number][]) =>
    bandwidths(
      segments.map(([bytes, ticks]) => [0, 0, bytes, ticks, 0]),
      1000,
    );

  it('takes the peak over windows of half to one and a half target durations', () => {
    // The short last segment alone is no window; with its neighbour it is.
    expect(of([750, 6_000], [7_500, 6_000], [5_000, 1_000])).toEqual({
      peakBandwidth: Math.ceil((12_500 * 8) / 7),
      averageBandwidth: Math.ceil((13_250 * 8) / 13),
    });
  });

  it('takes a single short segment as it is', () => {
    expect(of([1_000, 40])).toEqual({ peakBandwidth: 200_000, averageBandwidth: 200_000 });
  });

  it('never puts the peak under the average, nor under a segment of target duration', () => {
    const segments = fc.array(
      fc.tuple(fc.integer({ min: 1, max: 1e7 }), fc.integer({ min: 20, max: 6_000 })),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(segments, (given) => {
        const { peakBandwidth, averageBandwidth } = of(...given);
        expect(peakBandwidth).toBeGreaterThanOrEqual(averageBandwidth);
        const target = Math.max(1, Math.round(Math.max(...given.map(([, ticks]) => ticks)) / 1000));
        for (const [bytes, ticks] of given) {
          if (ticks / 1000 < target / 2) continue;
          expect(peakBandwidth).toBeGreaterThanOrEqual(Math.floor((bytes * 8_000) / ticks));
        }
      }),
    );
  });
});
