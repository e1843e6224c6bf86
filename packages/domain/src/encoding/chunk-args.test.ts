import { describe, expect, it } from '@jest/globals';
import { firstBreak, readEdges } from './chunk-args.ts';

const [a, b, c] = ['a', 'b', 'c'].map((letter) => letter.repeat(64)) as [string, string, string];

describe('readEdges', () => {
  const text = `#format: frame checksums\n#tb 0: 1/25\n0, 150, 150, 1, 345600, ${a}\n0, 300, 300, 1, 345600, ${b}\n`;
  it.each([
    [150, 150, { first: a, afterLast: b }],
    [150, 100, { first: a, afterLast: null }],
    [0, 150, { first: null, afterLast: a }],
  ])('finds the pictures by their numbers: %d + %d', (firstFrame, frames, expected) => {
    expect(readEdges(text, { firstFrame, frames })).toEqual(expected);
  });

  it('finds nothing in an empty file', () => {
    expect(readEdges('', { firstFrame: 0, frames: 1 })).toEqual({ first: null, afterLast: null });
  });
});

describe('firstBreak', () => {
  it.each([
    ['one chunk', [[null, null]], null],
    [
      'chunks that go on',
      [
        [null, a],
        [a, b],
        [b, null],
      ],
      null,
    ],
    [
      'another picture',
      [
        [a, b],
        [c, a],
        [a, null],
      ],
      1,
    ],
    [
      'the last of three',
      [
        [a, b],
        [b, c],
        [a, null],
      ],
      2,
    ],
    [
      'no hash on either side',
      [
        [a, null],
        [null, null],
      ],
      1,
    ],
  ] as const)('of %s', (_, chunks, expected) => {
    expect(firstBreak(chunks.map(([first, afterLast]) => ({ first, afterLast })))).toBe(expected);
  });
});
