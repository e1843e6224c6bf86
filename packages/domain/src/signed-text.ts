import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type KeySet } from './keys.ts';

/**
 * Signed text that travels through other hands: `base64url(JSON payload).base64url(HMAC-SHA256)`. The payload
 * names its key (`kid`), and the purpose is part of what is signed, so that one kind of token never passes
 * for another even where kinds share a key.
 */

/** Longer text is refused before it is looked at. The longest token made (a title of 200 emoji) has 1,900. */
const maximumLength = 2048;

/** Signs `payload` with the set's first key. `payload` must survive JSON and have no `kid` of its own. */
export function signText(
  purpose: string,
  payload: Readonly<Record<string, unknown>>,
  keySet: KeySet,
): string {
  const { kid, key } = keySet.signing;
  const body = Buffer.from(JSON.stringify({ kid, ...payload }), 'utf8').toString('base64url');
  return `${body}.${mac(purpose, body, key).toString('base64url')}`;
}

/**
 * The payload of text that `signText` made for the same purpose with a key of this set, else null. There is
 * one spelling only: padding, junk and a last character with unused bits set are refused, since Node's decoder
 * takes them all and two spellings of one token would count twice wherever tokens are compared as text.
 */
export function verifyText(purpose: string, text: string, keySet: KeySet): unknown {
  if (text.length > maximumLength) return null;
  const dot = text.indexOf('.');
  if (dot <= 0) return null;
  const body = text.slice(0, dot);
  const payloadBytes = decodeCanonical(body);
  const signature = decodeCanonical(text.slice(dot + 1));
  if (payloadBytes === null || signature === null) return null;
  const payload = parseObject(payloadBytes);
  const kid = payload?.['kid'];
  const key = typeof kid === 'string' ? keySet.byKid.get(kid) : undefined;
  if (key === undefined) return null;
  const expected = mac(purpose, body, key);
  return signature.length === expected.length && timingSafeEqual(signature, expected) ? payload : null;
}

const mac = (purpose: string, body: string, key: KeyObject): Buffer =>
  createHmac('sha256', key).update(`${purpose}\n${body}`).digest();

function decodeCanonical(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

function parseObject(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
