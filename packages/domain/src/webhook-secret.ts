import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { type KeySet } from './keys.ts';

/** A new signing secret: `whsec_` and 256 random bits. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(32).toString('base64url')}`;

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/** The sealed secret of an endpoint cannot be opened: its key is not in the set, or it is damaged. */
export class SealedSecretError extends Error {
  override readonly name = 'SealedSecretError';
  readonly code = 'sealed_secret_unreadable';
}

/**
 * Encrypts a signing secret for the record: `kid.base64url(iv, ciphertext, tag)`, AES-256-GCM with the set's
 * first key, bound to the endpoint so that one row's secret does not open in another.
 */
export function sealWebhookSecret(secret: string, endpointId: string, keySet: KeySet): string {
  const { kid, key } = keySet.signing;
  const iv = randomBytes(ivBytes);
  const sealing = createCipheriv(cipher, derived(key), iv).setAAD(Buffer.from(endpointId));
  const sealed = Buffer.concat([iv, sealing.update(secret, 'utf8'), sealing.final(), sealing.getAuthTag()]);
  return `${kid}.${sealed.toString('base64url')}`;
}

/**
 * The signing secret as issued.
 * @throws SealedSecretError
 */
export function openWebhookSecret(sealed: string, endpointId: string, keySet: KeySet): string {
  const dot = sealed.indexOf('.');
  const kid = sealed.slice(0, Math.max(dot, 0));
  const key = keySet.byKid.get(kid);
  if (key === undefined) throw new SealedSecretError(`there is no key "${kid}" in the set`);
  const bytes = Buffer.from(sealed.slice(dot + 1), 'base64url');
  if (bytes.length < ivBytes + tagBytes) throw new SealedSecretError('the sealed secret is cut short');
  const opening = createDecipheriv(cipher, derived(key), bytes.subarray(0, ivBytes))
    .setAAD(Buffer.from(endpointId))
    .setAuthTag(bytes.subarray(-tagBytes));
  try {
    const text = opening.update(bytes.subarray(ivBytes, -tagBytes));
    return Buffer.concat([text, opening.final()]).toString('utf8');
  } catch (error) {
    throw new SealedSecretError('the sealed secret is damaged, or of another endpoint', { cause: error });
  }
}

/** Deriving costs more than decrypting, and every attempt decrypts. */
const derivedKeys = new WeakMap<KeyObject, KeyObject>();

function derived(key: KeyObject): KeyObject {
  const known = derivedKeys.get(key);
  if (known !== undefined) return known;
  const made = createSecretKey(Buffer.from(hkdfSync('sha256', key, '', 'millrace.webhook-secret.v1', 32)));
  derivedKeys.set(key, made);
  return made;
}
