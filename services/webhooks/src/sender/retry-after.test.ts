import { describe, expect, it } from '@jest/globals';
import { readRetryAfter } from './retry-after.ts';

const now = new Date('2030-01-01T00:00:00.500Z');

describe('readRetryAfter', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['999999999', 999_999_999_000],
    ['Tue, 01 Jan 2030 00:01:00 GMT', 59_500],
    ['Mon, 31 Dec 2029 23:59:59 GMT', 0],
  ])('%j asks for %i ms', (value, ms) => expect(readRetryAfter(value, now)).toBe(ms));

  it.each([
    undefined,
    '',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    '9'.repeat(40),
    'soon',
    '2030-01-01',
    'Tue, 99 Jan 2030 00:01:00 GMT',
    'Tue, 01 Foo 2030 00:01:00 GMT',
    'Tue, 01 Jan 2030 00:01:00 +0100',
    '60, 120',
  ])('%j asks for nothing that can be read', (value) => expect(readRetryAfter(value, now)).toBeNull());
});
