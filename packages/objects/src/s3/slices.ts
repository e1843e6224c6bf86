export interface Slice {
  bytes: Buffer;
  /** Nothing comes after it. */
  last: boolean;
}

/**
 * A source in slices of `sliceBytes`, the last one shorter. A slice is given once it is known whether another one
 * follows, so one slice and one chunk are held at a time; an empty source is one empty slice.
 */
export async function* slices(source: AsyncIterable<Buffer>, sliceBytes: number): AsyncGenerator<Slice> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  for await (const chunk of source) {
    held.push(chunk);
    heldBytes += chunk.length;
    while (heldBytes > sliceBytes) {
      const all = Buffer.concat(held, heldBytes);
      yield { bytes: all.subarray(0, sliceBytes), last: false };
      const rest = all.subarray(sliceBytes);
      [held, heldBytes] = [[rest], rest.length];
    }
  }
  yield { bytes: Buffer.concat(held, heldBytes), last: true };
}
