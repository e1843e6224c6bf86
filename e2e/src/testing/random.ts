/** Chance that depends on the seed alone. */
export interface Chance {
  /** From 0 to 1, without 1. */
  next(): number;
  /** A whole number below this one. */
  below(limit: number): number;
  /** The same things in another order. */
  shuffled<T>(things: readonly T[]): T[];
}

/** Mulberry32. */
export function createChance(seed: number): Chance {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    shuffled: (things) => {
      const rest = [...things];
      return things.flatMap(() => rest.splice(below(rest.length), 1));
    },
  };
}

/** The seed that was given (`MILLRACE_TEST_SEED`), else any. */
export const testSeed = (): number =>
  Number(process.env['MILLRACE_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
