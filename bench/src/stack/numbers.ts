/** The value that this share of all is not above; NaN of none. */
export function percentile(values: Iterable<number>, share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** The upper one of the middle two when there are as many above as below. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Milliseconds as p50, p99 and the worst. */
export const spread = (ms: readonly number[]): string =>
  [0.5, 0.99, 1].map((share) => percentile(ms, share).toFixed(1)).join(' / ');

/** Milliseconds since 1970, with fractions: the same in all processes of this machine. */
export const nowMs = (): number => performance.timeOrigin + performance.now();
