import { randomFillSync } from 'node:crypto';

/** Every id type prefix (contract CNV-002). */
export type IdPrefix =
  | 'acc'
  | 'usr'
  | 'prj'
  | 'vid'
  | 'upl'
  | 'key'
  | 'dom'
  | 'whe'
  | 'evt'
  | 'phc'
  | 'ses'
  | 'del'
  | 'rep'
  | 'hld'
  | 'job'
  | 'tsk'
  | 'aud';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const length = 22;

/** 16 bytes as 22 base62 characters, so that text order is byte order. */
export function base62(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  const width = Math.ceil((bytes.length * 8) / Math.log2(62));
  let text = '';
  for (let i = 0; i < width; i++) {
    text = (alphabet[Number(value % 62n)] ?? '') + text;
    value /= 62n;
  }
  return text;
}

/**
 * A new id: `vid_` + base62 of a UUIDv7 (RFC 9562 §5.7), 22 characters, ordered by creation time; those of one process
 * also within a millisecond, so that a list shows them as they came.
 */
export function newId(prefix: IdPrefix, now: Date = new Date()): string {
  const bytes = new Uint8Array(16);
  randomFillSync(bytes);
  let ms = now.getTime();
  for (let i = 5; i >= 0; i--) {
    bytes[i] = ms % 256;
    ms = Math.floor(ms / 256);
  }
  const count = countWithin(now.getTime(), ((bytes[6] ?? 0) << 8) | (bytes[7] ?? 0));
  bytes[6] = (count >> 8) | 0x70;
  bytes[7] = count & 0xff;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return `${prefix}_${base62(bytes)}`;
}

const mostCounted = 0xfff;
let counted = 0;
let countedAt: number | undefined;

/** RFC 9562 §6.2, method 1: 12 bits that rise within a millisecond, from a random start in their lower half. */
function countWithin(ms: number, random: number): number {
  counted = ms === countedAt ? Math.min(counted + 1, mostCounted) : random & (mostCounted >> 1);
  countedAt = ms;
  return counted;
}

/** True when `text` has this prefix and an id's shape. */
export const isId = (prefix: IdPrefix, text: string): boolean =>
  text.length === prefix.length + 1 + length &&
  text.startsWith(`${prefix}_`) &&
  /^[A-Za-z0-9]+$/.test(text.slice(prefix.length + 1));

/** A random path segment for object keys: 22 base62 characters of 128 random bits. */
export const randomSegment = (): string => base62(randomFillSync(new Uint8Array(16)));
