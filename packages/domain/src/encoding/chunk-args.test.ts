import { describe, expect, it } from '@jest/globals';
import { firstBreak, hashEdges, readEdges, seekArgs } from './chunk-args.ts';
import { type EncodeManifest } from './types.ts';

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

describe('seekArgs', () => {
  const manifest = { zeroSeconds: 0.5, frameRate: [30_000, 1001] } as unknown as EncodeManifest;

  it('reads from the begin for the first chunk, and from a second before any other', () => {
    expect(seekArgs(manifest, { firstFrame: 0, frames: 9 })).toEqual([]);
    expect(seekArgs(manifest, { firstFrame: 180, frames: 9 })).toEqual([
      ...['-noaccurate_seek', '-seek_timestamp', '1', '-ss', '5.506000'],
    ]);
  });
});

describe('hashEdges', () => {
  it('hashes the first picture and the one behind the last, and leaves the chunk its own', () => {
    expect(hashEdges({ firstFrame: 150, frames: 90 }, '/out/edges')).toEqual({
      reach: { firstFrame: 150, frames: 91 },
      graph: ",split=2[chunk][edges];[edges]select='eq(n,0)+eq(n,90)'[hashed];[chunk]trim=end_frame=90",
      args: [
        '-map',
        '[hashed]',
        '-fps_mode',
        'passthrough',
        '-f',
        'framehash',
        '-hash',
        'sha256',
        '/out/edges',
      ],
    });
  });
});
