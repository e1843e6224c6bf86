import { createSecretKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';

/**
 * A named set of signing secrets, so that a secret can be replaced without a moment in which valid
 * signatures are refused: the first signs, all verify.
 */
export interface KeySet {
  /** Signs everything new. */
  readonly signing: { readonly kid: string; readonly key: KeyObject };
  /** Every key that verifies, by its name; the signing key too. */
  readonly byKid: ReadonlyMap<string, KeyObject>;
}

/** A key set that cannot be used. The message names a key by its id, never by its secret. */
export class KeySetError extends Error {
  override readonly name = 'KeySetError';
  readonly code = 'invalid_key_set';
}

/** HMAC-SHA256 keys shorter than its output weaken it (RFC 2104 §3). */
const minimumSecretBytes = 32;

/**
 * Reads `kid:secret[,kid:secret]`. A kid is 1 to 32 of `A-Z a-z 0-9 _ -`; a secret is used exactly as written,
 * as UTF-8, and may contain colons but no comma. White space around an entry is dropped.
 * @throws {KeySetError} when it is empty, malformed, has a kid twice or a secret under 32 bytes
 */
export function parseKeySet(text: string): KeySet {
  const byKid = new Map<string, KeyObject>();
  for (const [position, entry] of text.split(',').entries()) {
    const { kid, secret } = parseEntry(entry.trim(), position + 1);
    if (byKid.has(kid)) throw new KeySetError(`key "${kid}" appears twice`);
    byKid.set(kid, createSecretKey(secret));
  }
  const [first] = byKid;
  if (first === undefined) throw new KeySetError('no key given');
  return { signing: { kid: first[0], key: first[1] }, byKid };
}

/** A key set as a setting, for the schemas of configurations. */
export const keySetText = z.string().transform((text, context) => {
  try {
    return parseKeySet(text);
  } catch (error) {
    if (!(error instanceof KeySetError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});

/**
 * The shared secrets of a setting. Several, separated by commas, replace one another without a refusal: all of them are
 * accepted, the first is sent. White space around each is dropped; no header could carry it.
 */
export const sharedSecretsOf = (text: string): readonly [sent: string, ...others: string[]] =>
  text.split(',').map((each) => each.trim()) as [string, ...string[]];

/** Shared secrets as a setting; each has at least 32 bytes, since shorter ones can be guessed. */
export const sharedSecretText = z
  .string()
  .refine(
    (text) => sharedSecretsOf(text).every((each) => Buffer.byteLength(each) >= minimumSecretBytes),
    'has less than 32 bytes',
  );

function parseEntry(entry: string, position: number): { kid: string; secret: Buffer } {
  const colon = entry.indexOf(':');
  const kid = entry.slice(0, Math.max(colon, 0));
  // What stands before a missing or misplaced colon may be the secret itself: only its position is told.
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(kid)) {
    throw new KeySetError(`key ${position} is not of the form kid:secret`);
  }
  const secret = Buffer.from(entry.slice(colon + 1), 'utf8');
  if (secret.length < minimumSecretBytes) {
    throw new KeySetError(
      `the secret of key "${kid}" has ${secret.length} bytes, at least ${minimumSecretBytes} are needed`,
    );
  }
  return { kid, secret };
}
