import { describe, expect, it } from '@jest/globals';
import { readHead } from './head.ts';
import { parseRange } from './range.ts';

describe('readHead', () => {
  it('finds headers in any case and leaves others alone', () => {
    const raw = [
      'oRIGIN',
      'a',
      'referer',
      'b',
      'Range',
      'c',
      'IF-RANGE',
      'd',
      'If-None-Match',
      'e',
      'Cookie',
      'x',
    ];
    expect(readHead([...raw, 'X-Forwarded-For', 'f', 'Accept', 'y'])).toEqual({
      ...{ origin: 'a', referer: 'b', range: 'c', ifRange: 'd', ifNoneMatch: 'e', forwardedFor: 'f' },
    });
  });

  it('joins repeated ones and takes empty ones for absent', () => {
    expect(readHead(['Origin', 'a', 'Origin', 'b', 'Referer', '']).origin).toBe('a, b');
    expect(readHead(['Referer', '']).referer).toBeNull();
    expect(readHead(['__proto__', 'a', 'constr', 'b', 'toString', 'c'])).toEqual(readHead([]));
  });
});

describe('parseRange', () => {
  it('is unsatisfiable for anything of an empty body', () => {
    expect(parseRange('bytes=0-', 0)).toBe('unsatisfiable');
    expect(parseRange('bytes=-5', 0)).toBe('unsatisfiable');
  });
  it.each([
    ['bytes=0-0', { start: 0, end: 0 }],
    ['BYTES = 3-4 ', { start: 3, end: 4 }],
    ['bytes=9-', { start: 9, end: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=-', 'all'],
    ['bytes=', 'all'],
    ['bytes=1-2;x', 'all'],
    ['bytes=+1-2', 'all'],
    ['bytes=0x1-2', 'all'],
  ])('%j of ten bytes', (header, range) => {
    expect(parseRange(header, 10)).toEqual(range);
  });
});
