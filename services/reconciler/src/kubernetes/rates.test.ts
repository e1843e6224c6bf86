import { describe, expect, it } from '@jest/globals';
import { createManualClock } from '@millrace/testing';
import { createRates } from './rates.ts';

function setUp() {
  const clock = createManualClock();
  const rates = createRates({ burst: 3, perSecond: 2, clock });
  const book = (key: string, times: number): number[] => Array.from({ length: times }, () => rates.book(key));
  return { clock, book };
}

describe('rates', () => {
  it('let a burst through, and then one after the other', () => {
    expect(setUp().book('a', 6)).toEqual([0, 0, 0, 500, 1_000, 1_500]);
  });

  it('are one for each key', () => {
    const { book } = setUp();
    book('a', 6);
    expect(book('b', 3)).toEqual([0, 0, 0]);
  });

  it('give back what time brings, and never more than the burst', async () => {
    const { clock, book } = setUp();
    book('a', 3);
    await clock.advance(1_000);
    expect(book('a', 3)).toEqual([0, 0, 500]);
    await clock.advance(3_600_000);
    expect(book('a', 4)).toEqual([0, 0, 0, 500]);
  });

  it('forget no key that is not rested when they forget others', async () => {
    const { clock, book } = setUp();
    book('a', 1);
    await clock.advance(1_400);
    book('b', 5);
    await clock.advance(100);
    // Here is swept.
    book('c', 1);
    expect(book('b', 1)).toEqual([1_400]);
  });
});
