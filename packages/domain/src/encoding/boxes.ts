/** Reading of ISO base media boxes (ISO 14496-12) from bytes that may lie. */

/** The file is not what the encoder writes: cut off, or no CMAF. */
export class CmafError extends Error {
  override readonly name = 'CmafError';
  readonly code = 'cmaf_invalid';
}

export interface Box {
  type: string;
  /** The content after the header. */
  body: Buffer;
}

export interface BoxHeader {
  type: string;
  /** Length of the header, and of the whole box. */
  headerBytes: number;
  bytes: number;
}

/** Longest header: 32-bit size, type, 64-bit size. */
export const boxHeaderBytes = 16;

/**
 * Reads the header at the start of `bytes`; `limit` is how much may follow, the header included.
 * @throws CmafError when the box does not fit.
 */
export function readBoxHeader(bytes: Buffer, limit: number): BoxHeader {
  if (bytes.length < 8) throw new CmafError('a box header is cut off');
  const type = bytes.toString('latin1', 4, 8);
  const short = bytes.readUInt32BE(0);
  if (short !== 1) return checked({ type, headerBytes: 8, bytes: short === 0 ? limit : short }, limit);
  if (bytes.length < boxHeaderBytes) throw new CmafError('a box header is cut off');
  return checked({ type, headerBytes: 16, bytes: Number(bytes.readBigUInt64BE(8)) }, limit);
}

function checked(header: BoxHeader, limit: number): BoxHeader {
  if (header.bytes < header.headerBytes || header.bytes > limit) {
    throw new CmafError(`box ${JSON.stringify(header.type)} does not fit: ${header.bytes} of ${limit} bytes`);
  }
  return header;
}

/** The boxes that `bytes` consists of. */
export function readBoxes(bytes: Buffer): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; at < bytes.length;) {
    const rest = bytes.subarray(at);
    const header = readBoxHeader(rest, rest.length);
    boxes.push({ type: header.type, body: rest.subarray(header.headerBytes, header.bytes) });
    at += header.bytes;
  }
  return boxes;
}

/** The only box of this type along `path`. */
export function findBox(bytes: Buffer, ...path: string[]): Buffer {
  let body = bytes;
  for (const type of path) {
    const found = readBoxes(body).filter((box) => box.type === type);
    if (found.length !== 1 || found[0] === undefined) {
      throw new CmafError(`expected one ${type} box, found ${found.length}`);
    }
    body = found[0].body;
  }
  return body;
}

/** Reads numbers one after the other; every read is checked against the end. */
export class Fields {
  readonly #bytes: Buffer;
  #at = 0;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  #take(length: number): number {
    const at = this.#at;
    if (at + length > this.#bytes.length) throw new CmafError('a box is cut off');
    this.#at += length;
    return at;
  }
  u8 = (): number => this.#bytes.readUInt8(this.#take(1));
  u16 = (): number => this.#bytes.readUInt16BE(this.#take(2));
  u32 = (): number => this.#bytes.readUInt32BE(this.#take(4));
  i32 = (): number => this.#bytes.readInt32BE(this.#take(4));
  u64 = (): number => {
    const value = Number(this.#bytes.readBigUInt64BE(this.#take(8)));
    if (!Number.isSafeInteger(value)) throw new CmafError('a time is out of range');
    return value;
  };
  skip = (length: number): this => {
    this.#take(length);
    return this;
  };
  rest = (): Buffer => this.#bytes.subarray(this.#at);
}
