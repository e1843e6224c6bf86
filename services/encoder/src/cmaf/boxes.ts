/** One box of ISO base media (ISO/IEC 14496-12 §4.2) within a buffer. */
export interface Box {
  type: string;
  /** What is between its header and its end. */
  body: Buffer;
}

/** The file is not what it should be; the message says where. */
export class MalformedBoxError extends Error {
  override readonly name = 'MalformedBoxError';
  readonly code = 'malformed_box';
}

/** Size and type at the head of a box, from its first 16 bytes (fewer at the end of a file). */
export function boxHeader(head: Buffer): { type: string; bytes: number; headerBytes: number } {
  if (head.length < 8) throw new MalformedBoxError('a box header is cut off');
  const type = head.toString('latin1', 4, 8);
  const short = head.readUInt32BE(0);
  if (short !== 1) {
    if (short < 8) throw new MalformedBoxError(`a box ${type} of ${short} bytes`);
    return { type, bytes: short, headerBytes: 8 };
  }
  if (head.length < 16) throw new MalformedBoxError(`the header of ${type} is cut off`);
  const bytes = Number(head.readBigUInt64BE(8));
  if (bytes < 16 || !Number.isSafeInteger(bytes))
    throw new MalformedBoxError(`a box ${type} of ${bytes} bytes`);
  return { type, bytes, headerBytes: 16 };
}

/** The boxes that follow one another in a buffer. */
export function boxesIn(buffer: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at < buffer.length;) {
    const { type, bytes, headerBytes } = boxHeader(buffer.subarray(at, at + 16));
    if (at + bytes > buffer.length) throw new MalformedBoxError(`${type} ends behind its parent`);
    boxes.push({ type, body: buffer.subarray(at + headerBytes, at + bytes) });
    at += bytes;
  }
  return boxes;
}

/** The body of the only box at a path of types; each must be there once. */
export function bodyAt(buffer: Buffer, ...path: readonly string[]): Buffer {
  let body = buffer;
  for (const type of path) {
    const found = boxesIn(body).filter((box) => box.type === type);
    if (found[0] === undefined || found.length > 1) {
      throw new MalformedBoxError(`${found.length} boxes ${type} (${path.join('/')})`);
    }
    body = found[0].body;
  }
  return body;
}
