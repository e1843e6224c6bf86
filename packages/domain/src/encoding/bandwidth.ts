/** One media segment as a player fetches it. */
export interface SegmentSize {
  bytes: number;
  seconds: number;
}

export interface Bandwidth {
  /** Bits per second: the largest of any run of segments between 0.5 and 1.5 target durations. */
  peak: number;
  /** Bits per second over the whole. */
  average: number;
}

/**
 * Peak and average segment bit rate (RFC 8216 §4.3.4.2). A run that no window of 0.5 to 1.5 target durations
 * fits into (a video shorter than that) counts whole.
 */
export function measureBandwidth(segments: readonly SegmentSize[], targetDuration: number): Bandwidth {
  const seconds = segments.reduce((sum, s) => sum + s.seconds, 0);
  const bytes = segments.reduce((sum, s) => sum + s.bytes, 0);
  const average = rate(bytes, seconds);
  let peak = 0;
  for (let first = 0; first < segments.length; first++) {
    const run = { bytes: 0, seconds: 0 };
    for (let i = first; i < segments.length; i++) {
      const segment = segments[i];
      if (segment === undefined) break;
      run.bytes += segment.bytes;
      run.seconds += segment.seconds;
      if (run.seconds > 1.5 * targetDuration) break;
      if (run.seconds >= 0.5 * targetDuration) peak = Math.max(peak, rate(run.bytes, run.seconds));
    }
  }
  return { peak: Math.max(peak, average, 1), average: Math.max(average, 1) };
}

const rate = (bytes: number, seconds: number): number => (seconds > 0 ? Math.ceil((bytes * 8) / seconds) : 0);
