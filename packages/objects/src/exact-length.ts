/**
 * The chunks of a source that must have `sizeBytes` bytes in all.
 * @throws {RangeError} when it has more, at once, or fewer, at its end
 */
export async function* exactly(source: AsyncIterable<Buffer>, sizeBytes: number): AsyncGenerator<Buffer> {
  let given = 0;
  for await (const chunk of source) {
    given += chunk.length;
    if (given > sizeBytes)
      throw new RangeError(`the source has more than the ${sizeBytes} bytes it was to have`);
    yield chunk;
  }
  if (given < sizeBytes) throw new RangeError(`the source has ${given} bytes, not ${sizeBytes}`);
}
