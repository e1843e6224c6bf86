import { describe, expect, it } from '@jest/globals';
import { eachInTurn, eachOfPages } from './each.ts';

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
      message: '1 were left',
      errors: [new Error('poisoned')],
    });
    expect(done).toEqual(['a', 'b']);
  });
});

describe('eachOfPages', () => {
  const pages =
    (ids: readonly string[], size = 2) =>
    (after: string): Promise<{ id: string }[]> =>
      Promise.resolve(
        ids
          .filter((id) => id > after)
          .slice(0, size)
          .map((id) => ({ id })),
      );

  it('goes along all pages, behind what fails too, and tells of that in the end', async () => {
    const done: string[] = [];
    const running = eachOfPages(pages(['a', 'b', 'c', 'd', 'e']), ({ id }) => {
      if (id === 'b') return Promise.reject(new Error('poisoned'));
      done.push(id);
      return Promise.resolve(1);
    });
    await expect(running).rejects.toMatchObject({ errors: [new Error('poisoned')] });
    expect(done).toEqual(['a', 'c', 'd', 'e']);
  });

  it('has as many under way at once as it is told, and ends with its signal', async () => {
    const end = new AbortController();
    let [under, most, begun] = [0, 0, 0];
    const work = async (): Promise<number> => {
      under += 1;
      begun += 1;
      most = Math.max(most, under);
      if (begun === 4) end.abort();
      await Promise.resolve();
      under -= 1;
      return 1;
    };
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'];
    expect(await eachOfPages(pages(ids, 6), work, { atOnce: 2, signal: end.signal })).toBe(4);
    expect(most).toBe(2);
  });
});
