import { describe, expect, it } from '@jest/globals';
import { createKeyedLock } from './keyed-lock.ts';
import { mapLimit } from './map-limit.ts';

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
};

describe('createKeyedLock', () => {
  it('runs one key’s work in order and one at a time, other keys beside it', async () => {
    const lock = createKeyedLock();
    const seen: string[] = [];
    const work = (name: string, length: number) => async () => {
      seen.push(`${name} begins`);
      await turns(length);
      seen.push(`${name} ends`);
      return name;
    };
    const results = await Promise.all([
      lock('a', work('a1', 30)),
      lock('a', work('a2', 1)),
      lock('b', work('b', 1)),
    ]);
    expect(results).toEqual(['a1', 'a2', 'b']);
    expect(seen.filter((line) => line.startsWith('a'))).toEqual([
      'a1 begins',
      'a1 ends',
      'a2 begins',
      'a2 ends',
    ]);
    expect(seen.indexOf('b ends')).toBeLessThan(seen.indexOf('a1 ends'));
  });

  it('goes on after a failure, which is its caller’s alone', async () => {
    const lock = createKeyedLock();
    const failed = lock('a', () => Promise.reject(new Error('broken')));
    const next = lock('a', () => Promise.resolve('fine'));
    await expect(failed).rejects.toThrow('broken');
    await expect(next).resolves.toBe('fine');
  });
});

describe('mapLimit', () => {
  it('keeps the order and never runs more than the limit', async () => {
    let running = 0;
    let most = 0;
    const results = await mapLimit([5, 1, 4, 2, 3], 2, async (item) => {
      most = Math.max(most, (running += 1));
      await turns(item * 5);
      running -= 1;
      return item * 10;
    });
    expect(results).toEqual([50, 10, 40, 20, 30]);
    expect(most).toBe(2);
  });

  it('rejects with the first failure and starts no more', async () => {
    const started: number[] = [];
    const work = async (item: number): Promise<void> => {
      started.push(item);
      await turns(1);
      if (item === 2) throw new Error('two');
    };
    await expect(mapLimit([1, 2, 3, 4, 5, 6, 7, 8], 2, work)).rejects.toThrow('two');
    await turns(50);
    expect(started.length).toBeLessThan(5);
  });
});
