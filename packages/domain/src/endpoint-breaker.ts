/** Failures in a row after which an endpoint gets probes only. */
const failuresToOpen = 5;
/** Between probes, in milliseconds: doubles from the first to the last. */
const firstPauseMs = 2_000;
const longestPauseMs = 30_000;
/** A probe that hung for long is followed by a pause of this many times that long. */
const pausePerProbe = 3;

/**
 * The circuit breaker of an endpoint: how long it is left alone after a failed attempt. While it fails, one
 * attempt at once goes to it, a probe, whatever waits for it; the first success closes the breaker. The pauses are
 * short beside the waits between tries, so that an endpoint that comes back has everything within half a minute,
 * and a single delivery is tried when it is due.
 *
 * @param failures in a row, this one included
 * @param durationMs how long the attempt took
 * @returns the pause in milliseconds; null while the breaker stays closed
 */
export function breakerPause(failures: number, durationMs: number): number | null {
  if (failures < failuresToOpen) return null;
  const growing = firstPauseMs * 2 ** Math.min(failures - failuresToOpen, 10);
  return Math.min(longestPauseMs, Math.max(growing, pausePerProbe * durationMs));
}
