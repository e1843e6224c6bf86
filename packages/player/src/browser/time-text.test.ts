import { describe, expect, it } from '@jest/globals';
import { timeText } from './time-text.ts';

describe('timeText', () => {
  it.each([
    [0, '0:00'],
    [7.9, '0:07'],
    [59.999, '0:59'],
    [60, '1:00'],
    [754, '12:34'],
    [3_723, '1:02:03'],
    [86_400, '24:00:00'],
    [-1, '0:00'],
    [NaN, '0:00'],
    [Infinity, '0:00'],
  ])('%s s is %s', (seconds, text) => {
    expect(timeText(seconds)).toBe(text);
  });
});
