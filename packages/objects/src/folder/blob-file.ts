import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ObjectStoreError, type StoredObject } from '../object-store.ts';
import { SourceError } from './files.ts';

/**
 * The store's one file format, so that bytes and what is known of them can only appear together: a line of
 * JSON padded to 256 bytes, then the body. `bytes`: the body is the content (an object that was put, or one
 * part). `parts`: the body is a JSON list of `[partNumber, sizeBytes]`, and the content is in the folder of that
 * upload, one `bytes` file per part.
 */
export interface BlobHeader {
  kind: 'bytes' | 'parts';
  /** Unquoted: MD5 of the content, or MD5 of the parts' MD5s and their count, as S3 makes it. */
  etag: string;
  sizeBytes: number;
  modifiedMs: number;
  /** Of kind `parts` only. */
  uploadId?: string;
}

export const headerBytes = 256;
/** O_NOFOLLOW: a link in an object's place is an error, never a way out of the folder. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW;

/** Writes content into a new file, durably, and its header last. Aborts between chunks. */
export async function writeBytes(
  file: FileHandle,
  content: Buffer | AsyncIterable<Buffer | string>,
  { modifiedMs, signal }: { modifiedMs: number; signal?: AbortSignal | undefined },
): Promise<BlobHeader> {
  const md5 = createHash('md5');
  let sizeBytes = 0;
  for await (const piece of Buffer.isBuffer(content) ? [content] : fromSource(content)) {
    signal?.throwIfAborted();
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
    // Hashing and writing go on at the same time: the write runs on another thread.
    const written = writeAll(file, chunk, headerBytes + sizeBytes);
    md5.update(chunk);
    await written;
    sizeBytes += chunk.length;
  }
  signal?.throwIfAborted();
  const header: BlobHeader = { kind: 'bytes', etag: md5.digest('hex'), sizeBytes, modifiedMs };
  await finish(file, header);
  return header;
}

async function* fromSource(content: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer | string> {
  try {
    yield* content;
  } catch (cause) {
    throw new SourceError('the content could not be read to its end', { cause });
  }
}

/** Writes the index of an object made of parts into a new file, durably. */
export async function writeParts(
  file: FileHandle,
  header: BlobHeader & { kind: 'parts' },
  parts: readonly (readonly [partNumber: number, sizeBytes: number])[],
): Promise<void> {
  await writeAll(file, Buffer.from(JSON.stringify(parts)), headerBytes);
  await finish(file, header);
}

async function finish(file: FileHandle, header: BlobHeader): Promise<void> {
  await writeAll(file, Buffer.from(`${JSON.stringify(header).padEnd(headerBytes - 1)}\n`), 0);
  await file.datasync();
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Opens a blob and reads its header. The caller closes the file. */
export async function openBlob(path: string): Promise<{ file: FileHandle; header: BlobHeader }> {
  const file = await open(path, readFlags);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headerBytes), 0, headerBytes, 0);
    return { file, header: JSON.parse(buffer.toString('utf8', 0, bytesRead)) as BlobHeader };
  } catch (error) {
    await file.close();
    if (!(error instanceof SyntaxError)) throw error;
    throw new ObjectStoreError('unavailable', 'a file of the object folder is damaged', { cause: error });
  }
}

export async function readHeader(path: string): Promise<BlobHeader> {
  const { file, header } = await openBlob(path);
  await file.close();
  return header;
}

/** The list of an index that `openBlob` opened; closes it. */
export async function readParts(file: FileHandle): Promise<[partNumber: number, sizeBytes: number][]> {
  try {
    const { size } = await file.stat();
    const body = Buffer.alloc(size - headerBytes);
    await file.read(body, 0, body.length, headerBytes);
    return JSON.parse(body.toString('utf8')) as [number, number][];
  } finally {
    await file.close();
  }
}

export function toStoredObject(key: string, header: BlobHeader): StoredObject {
  return {
    key,
    sizeBytes: header.sizeBytes,
    etag: `"${header.etag}"`,
    lastModified: new Date(header.modifiedMs),
  };
}
