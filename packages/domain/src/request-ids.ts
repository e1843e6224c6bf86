import { randomBytes } from 'node:crypto';
import { base62 } from './ids.ts';

/**
 * Request ids in the form of the others (`req_` and 22 characters), unique by a random part for this process
 * and a counter: drawing 16 random bytes for each would cost more than the rest of a warm request.
 */
export function createRequestIds(): () => string {
  const boot = base62(randomBytes(9)).slice(0, 12).padStart(12, '0');
  let count = 0;
  return () => `req_${boot}${(count++).toString(36).padStart(10, '0')}`;
}
