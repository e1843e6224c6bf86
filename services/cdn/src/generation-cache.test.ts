import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { GenerationCache } from './generation-cache.ts';

describe('GenerationCache', () => {
  it('never holds more than its bound, and nothing but what was set last', () => {
    const steps = fc.array(
      fc.record({
        key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
        bytes: fc.nat(70),
        act: fc.constantFrom('set', 'get', 'delete'),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const cache = new GenerationCache<number>(100);
        const last = new Map<string, number>();
        for (const [value, { key, bytes, act }] of all.entries()) {
          if (act === 'set') {
            cache.set(key, value, bytes);
            last.set(key, value);
          } else if (act === 'delete') {
            cache.delete(key);
            last.delete(key);
          }
          const found = cache.get(key);
          if (found !== undefined) expect(found).toBe(last.get(key));
          expect(cache.bytes).toBeLessThanOrEqual(100);
          const held = [...cache.values()];
          expect(new Set(held).size).toBe(held.length);
          if (held.length === 0) expect(cache.bytes).toBe(0);
        }
      }),
    );
  });

  it('keeps what is read, drops what is not', () => {
    const cache = new GenerationCache<number>(100);
    cache.set('read', 1, 10);
    cache.set('unread', 2, 10);
    for (let n = 0; n < 20; n++) {
      cache.set(`new-${n}`, n, 10);
      expect(cache.get('read')).toBe(1);
    }
    expect(cache.get('unread')).toBeUndefined();
    expect(cache.get('new-19')).toBe(19);
  });

  it('does not keep a value that would push out everything else', () => {
    const cache = new GenerationCache<number>(100);
    cache.set('small', 1, 40);
    cache.set('huge', 2, 51);
    expect(cache.get('huge')).toBeUndefined();
    expect(cache.get('small')).toBe(1);
    cache.set('small', 3, 51);
    expect(cache.get('small')).toBeUndefined();
  });
});
