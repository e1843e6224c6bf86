import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { boxHeader, MalformedBoxError } from './boxes.ts';
import { type Fragment, readFragment } from './fragment.ts';
import { type InitSegment, readInit } from './init-segment.ts';

interface CmafFragment extends Fragment {
  /** Of its `moof` in the file. */
  offset: number;
}

/** A fragmented MP4 of one track as ffmpeg writes it: where everything lies, and nothing of the media itself. */
export interface CmafFile extends InitSegment {
  bytes: number;
  initBytes: number;
  /** SHA-256 of the init segment, hex. */
  initHash: string;
  /** Empty when nothing was encoded. */
  fragments: CmafFragment[];
}

/** A `moof` takes some 12 bytes a sample; what is larger is not ours. */
const largestHeader = 16 * 1024 ** 2;

/**
 * Reads the structure of a file: its headers only, however large the file.
 * @throws MalformedBoxError when it is not a fragmented MP4 of one track
 */
export async function readCmafFile(path: string): Promise<CmafFile> {
  const file = await open(path);
  try {
    return await readFrom(file, (await file.stat()).size);
  } catch (error) {
    if (isFieldBehindEnd(error)) throw new MalformedBoxError('a box is too short', { cause: error });
    throw error;
  } finally {
    await file.close();
  }
}

/** Of a field behind the end of its box. By code: Node's own errors are not of this realm's classes in every host. */
const isFieldBehindEnd = (error: unknown): boolean =>
  ['ERR_OUT_OF_RANGE', 'ERR_BUFFER_OUT_OF_BOUNDS'].includes(
    (error as Partial<NodeJS.ErrnoException>).code ?? '',
  );

async function readFrom(file: FileHandle, bytes: number): Promise<CmafFile> {
  let init: (InitSegment & { initBytes: number; initHash: string }) | undefined;
  const fragments: CmafFragment[] = [];
  for (let at = 0; at < bytes;) {
    const box = boxHeader(await read(file, at, Math.min(16, bytes - at)));
    const end = at + box.bytes;
    if (end > bytes) throw new MalformedBoxError(`${box.type} is cut off at the end of the file`);
    if (box.type === 'moov') {
      const moov = await read(file, at + box.headerBytes, box.bytes - box.headerBytes);
      const initHash = createHash('sha256')
        .update(await read(file, 0, end))
        .digest('hex');
      init = { ...readInit(moov), initBytes: end, initHash };
    } else if (box.type === 'moof') {
      if (init === undefined) throw new MalformedBoxError('a fragment before the init segment');
      const moof = await read(file, at + box.headerBytes, box.bytes - box.headerBytes);
      fragments.push({ ...readFragment(moof, init.defaults), offset: at });
    } else if (box.type === 'mdat') {
      const fragment = fragments.at(-1);
      if (fragment?.bytes !== end - (fragment?.offset ?? 0))
        throw new MalformedBoxError('media without a fragment');
    }
    at = end;
  }
  if (init === undefined) throw new MalformedBoxError('no init segment');
  return { ...init, bytes, fragments };
}

async function read(file: FileHandle, at: number, length: number): Promise<Buffer> {
  if (length > largestHeader) throw new MalformedBoxError(`a header of ${length} bytes`);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  if (bytesRead !== length) throw new MalformedBoxError('the file ends early');
  return buffer;
}
