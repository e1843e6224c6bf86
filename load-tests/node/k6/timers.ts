/** Stands in for k6's module `k6/timers`. */
export const setTimeout = globalThis.setTimeout;
