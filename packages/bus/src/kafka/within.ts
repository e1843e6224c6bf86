import { setTimeout as pause } from 'node:timers/promises';

const late = Symbol('late');

/**
 * The work's result, or what `otherwise` makes of it when it takes longer than `ms` milliseconds. What becomes of
 * the work afterwards is nobody's concern any more: it may reject unheard.
 */
export async function within<T>(ms: number, work: Promise<T>, otherwise: () => T | Promise<T>): Promise<T> {
  const timer = new AbortController();
  const expiry = pause(ms, late, { signal: timer.signal }).catch(() => late);
  try {
    const outcome = await Promise.race([work, expiry]);
    return outcome === late ? await otherwise() : (outcome as T);
  } finally {
    timer.abort();
    work.catch(() => undefined);
  }
}
