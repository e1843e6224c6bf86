import { describe, expect, it } from '@jest/globals';
import { fileAddress, isTokenText, withToken } from './addresses.ts';

describe('addresses', () => {
  it('get the token in place of the one that they have', () => {
    expect(withToken('https://c.example/v/vid_1/720p/seg-1.m4s?token=a.b', 'c.d')).toBe(
      'https://c.example/v/vid_1/720p/seg-1.m4s?token=c.d',
    );
    expect(withToken('https://c.example/v/vid_1/a?x=1&token=a.b&token=e.f', 'c.d')).toBe(
      'https://c.example/v/vid_1/a?x=1&token=c.d',
    );
  });

  it('are beside the page’s own, below whatever prefix', () => {
    const master = fileAddress('https://c.example/cdn/e/vid_1?token=a.b&lang=ar', 'vid_1', 'master.m3u8');
    expect(master).toBe('https://c.example/cdn/v/vid_1/master.m3u8');
  });

  it.each([
    ['eyJ.a_b-C', true],
    ['', false],
    ['a', false],
    ['a.b&lang=x', false],
    ['a.b.c', false],
    [`${'a'.repeat(5_000)}.b`, false],
    [null, false],
    [['a.b'], false],
  ])('%j may be a token: %s', (value, may) => {
    expect(isTokenText(value)).toBe(may);
  });
});
