/** A segment that a viewer watched, and its length in milliseconds. */
export interface WatchedSegment {
  index: number;
  ms: number;
}

/** Far above what 24 hours of one-second segments have: bounds what one view may take in the record. */
const mostSegments = 100_000;

/**
 * Which segments of a view were counted is a bitmap: segment n is bit `n % 8` of byte `n / 8`. Joining says what
 * is new, so that a segment counts once however often and in whatever order it is reported (design, "Topics").
 *
 * @param bitmap what was counted before
 * @returns the bitmap with the segments in it, and the milliseconds of those that it did not have
 */
export function joinSegments(
  bitmap: Uint8Array,
  segments: readonly WatchedSegment[],
): { bitmap: Buffer; newMs: number } {
  const known = segments.filter(({ index }) => Number.isInteger(index) && index >= 0 && index < mostSegments);
  const bytes = known.reduce((most, { index }) => Math.max(most, (index >> 3) + 1), bitmap.length);
  const joined = Buffer.alloc(bytes);
  joined.set(bitmap);
  let newMs = 0;
  for (const { index, ms } of known) {
    const [byte, bit] = [index >> 3, 1 << (index & 7)];
    const before = joined[byte] ?? 0;
    if ((before & bit) !== 0) continue;
    joined[byte] = before | bit;
    newMs += Math.max(0, Math.round(ms));
  }
  return { bitmap: joined, newMs };
}
