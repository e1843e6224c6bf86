import { describe, expect, it } from '@jest/globals';
import { createKeep } from './keep.ts';

describe('createKeep', () => {
  it('makes a thing once, and anew when more was made than it keeps', () => {
    const keep = createKeep<string>(2);
    const made: string[] = [];
    const get = (key: string): string =>
      keep(key, () => {
        made.push(key);
        return key.toUpperCase();
      });
    expect(['a', 'a', 'b', 'a', 'c', 'a', 'c'].map(get)).toEqual(['A', 'A', 'B', 'A', 'C', 'A', 'C']);
    expect(made).toEqual(['a', 'b', 'c', 'a']);
  });

  it('keeps nothing of what throws', () => {
    const keep = createKeep<number>(2);
    const fail = (): number => {
      throw new Error('not now');
    };
    expect(() => keep('a', fail)).toThrow('not now');
    expect(keep('a', () => 1)).toBe(1);
  });
});
