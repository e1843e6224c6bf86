import { describe, expect, it } from '@jest/globals';
import { eachInTurn } from './each.ts';

describe('eachInTurn', () => {
  it('counts what was changed', async () => {
    expect(await eachInTurn([1, 0, 2], (count) => Promise.resolve(count))).toBe(3);
    expect(await eachInTurn([], () => Promise.reject(new Error('never')))).toBe(0);
  });

  it('goes on behind what fails, and tells of it in the end', async () => {
    const done: string[] = [];
    const running = eachInTurn(['poison', 'a', 'b'], (name) => {
      if (name === 'poison') return Promise.reject(new Error('poisoned'));
      done.push(name);
      return Promise.resolve(1);
    });
    await expect(running).rejects.toMatchObject({
      message: '1 of 3 were left',
      errors: [new Error('poisoned')],
    });
    expect(done).toEqual(['a', 'b']);
  });
});
