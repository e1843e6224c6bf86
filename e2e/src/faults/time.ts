/** How long a campaign may take. */
export interface Time {
  /** Aborts when it is over. */
  signal: AbortSignal;
  /** What is left of it, in milliseconds; never below 0. */
  leftMs(): number;
}

/** Begins now. */
export function startTime(limitMs: number, signal: AbortSignal): Time {
  const deadline = performance.now() + limitMs;
  return {
    signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
    leftMs: () => Math.max(0, Math.round(deadline - performance.now())),
  };
}
