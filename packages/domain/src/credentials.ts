import { hash as digestOf, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62, isId, newId } from './ids.ts';

/** SHA-256: enough for secrets of 256 random bits, which cannot be guessed however fast the hash is. */
export const hashOf = (secret: string): Buffer => digestOf('sha256', secret, 'buffer');

/** Whether a secret has this hash, in time that does not depend on where they differ. */
export function matchesHash(secret: string, hash: Buffer): boolean {
  const actual = hashOf(secret);
  return actual.length === hash.length && timingSafeEqual(actual, hash);
}

/** A new API key (contract KEY-003): `svk_<id part>_<secret>`. Only the secret's hash is stored. */
export function newApiKey(now: Date): { id: string; prefix: string; value: string; secretHash: Buffer } {
  const id = newId('key', now);
  const prefix = `svk_${id.slice('key_'.length)}`;
  const secret = base62(randomBytes(32));
  return { id, prefix, value: `${prefix}_${secret}`, secretHash: hashOf(secret) };
}

/** The parts of text that has the form of an API key's value; null for other text. */
export function parseApiKey(value: string): { id: string; secret: string } | null {
  const match = /^svk_([A-Za-z0-9]{22})_([A-Za-z0-9]{43})$/.exec(value);
  if (match === null) return null;
  const [, idPart = '', secret = ''] = match;
  const id = `key_${idPart}`;
  return isId('key', id) ? { id, secret } : null;
}

/** A new value of the session cookie: opaque, 256 random bits. Only its hash is stored. */
export const newSessionId = (): string => `ses_${base62(randomBytes(32))}`;

const dayMs = 86_400_000;
const slidingMs = 7 * dayMs;
const longestMs = 30 * dayMs;

/** When a session that was used at `seenAt` ends: 7 days later, but 30 days after its start at most. */
export const sessionExpiry = (createdAt: Date, seenAt: Date): Date =>
  new Date(Math.min(seenAt.getTime() + slidingMs, createdAt.getTime() + longestMs));
