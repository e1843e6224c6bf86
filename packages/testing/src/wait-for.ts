import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';

export interface WaitForOptions {
  /** How long the condition may take, in milliseconds; 15 s unless told. */
  timeoutMs?: number;
  /** What is waited for, for the failure's message. */
  what?: string;
}

const intervalMs = 15;

/**
 * Asks again and again until the predicate answers with something truthy, and returns that. An error of the
 * predicate counts as "not yet"; the last one is the cause of the failure when the time is over.
 */
export async function waitFor<T>(
  predicate: () => T | Promise<T>,
  { timeoutMs = 15_000, what = 'the condition' }: WaitForOptions = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  let last: { seen: string; error?: unknown };
  do {
    try {
      const value = await predicate();
      if (value) return value;
      last = { seen: `last seen: ${inspect(value, { depth: 4 })}` };
    } catch (error) {
      last = { seen: 'it failed last', error };
    }
    await pause(intervalMs);
  } while (performance.now() < deadline);
  throw new Error(`waited ${timeoutMs} ms for ${what}; ${last.seen}`, { cause: last.error });
}
