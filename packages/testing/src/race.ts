/** How often a race is run before its outcome is believed. */
export const raceRounds = 200;

/**
 * Runs contenders at once and says how each ended: with what it resolved with when that is text, else `ok`, or with the
 * `code` of what refused it. An error without a code fails the race.
 */
export async function race(contenders: readonly (() => Promise<unknown>)[]): Promise<string[]> {
  const ends = await Promise.allSettled(contenders.map((contend) => contend()));
  return ends.map((end) => {
    if (end.status === 'fulfilled') return typeof end.value === 'string' ? end.value : 'ok';
    const { code } = end.reason as { code?: unknown };
    if (typeof code !== 'string') throw end.reason;
    return code;
  });
}
