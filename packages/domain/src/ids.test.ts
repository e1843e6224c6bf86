import { describe, expect, it } from '@jest/globals';
import { isId, newId, randomSegment } from './ids.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The 32 hexadecimal digits that the base62 part of an id stands for. */
const hexOf = (id: string): string =>
  Array.from(id.slice(id.indexOf('_') + 1))
    .reduce((value, letter) => value * 62n + BigInt(alphabet.indexOf(letter)), 0n)
    .toString(16)
    .padStart(32, '0');

describe('newId', () => {
  it('is a prefix and the base62 of a UUIDv7 of its time [CNV-001]', () => {
    const id = newId('vid', new Date('2026-03-01T12:00:00.123Z'));
    expect(id).toMatch(/^vid_[A-Za-z0-9]{22}$/);
    const hex = hexOf(id);
    // RFC 9562, 5.7: 48 bits of milliseconds, version 7, variant 10.
    expect(parseInt(hex.slice(0, 12), 16)).toBe(Date.parse('2026-03-01T12:00:00.123Z'));
    expect([hex[12], /[89ab]/.test(hex[16] ?? '')]).toEqual(['7', true]);
  });

  it('sorts by creation, across the year 2000 and beyond 2100 too [CNV-001]', () => {
    const instants = ['1999-12-31T23:59:59.999Z', '2026-03-01T12:00:00.123Z', '2026-03-01T12:00:00.124Z'];
    const ids = [...instants, '2150-01-01T00:00:00.000Z'].map((at) => newId('evt', new Date(at)));
    expect(ids.toSorted()).toEqual(ids);
  });

  it('sorts by creation within a millisecond too, for as many as one brings', () => {
    const now = new Date('2026-03-01T12:00:00.500Z');
    const ids = Array.from({ length: 2_000 }, () => newId('evt', now));
    expect(ids.toSorted()).toEqual(ids);
    const others = Array.from({ length: 4_200 }, () => hexOf(newId('evt', now)));
    expect(new Set(others).size).toBe(4_200);
    // However many there are, they stay of that time and version.
    expect(new Set(others.map((hex) => hex.slice(0, 13))).size).toBe(1);
    expect(others.at(-1)?.slice(13, 16)).toBe('fff');
  });

  it('is random in every digit but its time, version, counter and variant', () => {
    const made = Array.from({ length: 1_000 }, () => hexOf(newId('vid', new Date(0))));
    for (const at of Array.from({ length: 32 }, (_, digit) => digit).filter((at) => at < 13 || at > 15)) {
      const seen = new Set(made.map((hex) => hex[at])).size;
      expect([at, seen]).toEqual([at, at <= 12 ? 1 : at === 16 ? 4 : 16]);
    }
  });

  it('counts from a random start in the lower half of each millisecond', () => {
    const starts = Array.from({ length: 1_000 }, (_, n) =>
      parseInt(hexOf(newId('vid', new Date(1_000 + n))).slice(13, 16), 16),
    );
    expect(new Set(starts).size).toBeGreaterThan(500);
    expect(Math.max(...starts)).toBeLessThan(2_048);
    expect(Math.max(...starts)).toBeGreaterThan(1_024);
  });

  it('never comes twice', () => {
    const now = new Date();
    expect(new Set(Array.from({ length: 1_000 }, () => newId('upl', now))).size).toBe(1_000);
  });
});

describe('isId', () => {
  it('knows its own, and no other prefix or shape', () => {
    const id = newId('prj');
    expect(isId('prj', id)).toBe(true);
    for (const other of [
      '',
      'prj_',
      id.slice(0, -1),
      `${id}x`,
      id.replace('prj', 'vid'),
      `${id.slice(0, -1)}-`,
      id.replace(/_./, '_-'),
    ]) {
      expect(isId('prj', other)).toBe(false);
    }
  });
});

describe('randomSegment', () => {
  it('has 22 characters and never comes twice', () => {
    const made = Array.from({ length: 1_000 }, randomSegment);
    for (const segment of made) expect(segment).toMatch(/^[A-Za-z0-9]{22}$/);
    expect(new Set(made).size).toBe(1_000);
  });
});
