import { expect, it } from '@jest/globals';
import { CaptionsError, normaliseCaptions } from './index.ts';

// A file of its own: it takes seconds, so mutants are not tried on it.
it('takes time in proportion to what a hostile file has', () => {
  for (const unit of ['<', '<1', '<b', '<v ', '</', '&', '&#1', '{\\a', ' ', '-->', '>', '<b></b>', '\n']) {
    const file = `1\n00:00:01,000 --> 00:00:09,000\n${unit.repeat(2 ** 20 / unit.length)}`;
    const began = performance.now();
    try {
      normaliseCaptions(Buffer.from(file));
    } catch (error) {
      expect(error).toBeInstanceOf(CaptionsError);
    }
    expect([unit, performance.now() - began < 3_000]).toEqual([unit, true]);
  }
});
