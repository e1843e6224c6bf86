import { type FileHandle, link, unlink, rename } from 'node:fs/promises';
import path from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { exactly } from '../exact-length.ts';
import { assertKey } from '../keys.ts';
import {
  type ByteRange,
  type ObjectBody,
  ObjectStoreError,
  type Page,
  type StoredObject,
} from '../object-store.ts';
import {
  type BlobHeader,
  headerBytes,
  openBlob,
  readParts,
  toStoredObject,
  writeBytes,
} from './blob-file.ts';
import { type Extent, ExtentStream } from './extent-stream.ts';
import { assertNoLink, orNull, pruneUpwards, publish, syncFolder } from './files.ts';
import { type FolderContext, objectPath, partName } from './layout.ts';
import { listKeys } from './listing.ts';
import { mapLimit } from './map-limit.ts';

/** What opening answers when there is no such object: nothing there, a part of the path is a file, or it is a folder. */
const absent = ['ENOENT', 'ENOTDIR', 'EISDIR'];
const concurrency = 16;

/** The header of an object, or null when absent. */
export async function headerOf(context: FolderContext, key: string): Promise<BlobHeader | null> {
  const opened = await openObject(context, key);
  await opened?.file.close();
  return opened && opened.header;
}

async function openObject(
  context: FolderContext,
  key: string,
): Promise<{ file: FileHandle; header: BlobHeader } | null> {
  const target = objectPath(context, key);
  return orNull(
    absent,
    assertNoLink(path.dirname(target)).then(() => openBlob(target)),
  );
}

export async function putObject(
  context: FolderContext,
  key: string,
  body: Buffer | Readable,
  { signal, sizeBytes }: { signal?: AbortSignal; sizeBytes?: number } = {},
): Promise<BlobHeader> {
  objectPath(context, key);
  signal?.throwIfAborted();
  // A source that stalls hears of the abort too.
  if (signal && !Buffer.isBuffer(body)) addAbortSignal(signal, body);
  const content = Buffer.isBuffer(body) || sizeBytes === undefined ? body : exactly(body, sizeBytes);
  return writeTemp(context, content, signal, (file) => publishObject(context, file, key));
}

/** Writes content to a temporary file and hands it on; whatever fails, the file is gone after. */
export async function writeTemp(
  { temp, clock }: FolderContext,
  content: Buffer | AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
  place: (file: string, header: BlobHeader) => Promise<void>,
): Promise<BlobHeader> {
  const { path: file, file: handle } = await temp.create();
  try {
    const header = await writeBytes(handle, content, { modifiedMs: clock.now().getTime(), signal }).finally(
      () => handle.close(),
    );
    await place(file, header);
    return header;
  } catch (error) {
    await temp.discard(file);
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Moves a finished blob to its key. The parts of an object that it replaces are removed. */
export async function publishObject(context: FolderContext, file: string, key: string): Promise<void> {
  const target = objectPath(context, key);
  await context.lockKey(key, async () => {
    const replaced = (await headerOf(context, key))?.uploadId;
    // Should the process die here, the start looks whether the object still uses these parts.
    if (replaced !== undefined) {
      await orNull(['EEXIST'], link(target, path.join(context.folders.trash, replaced)));
      await syncFolder(context.folders.trash);
    }
    await publish(file, context.folders.objects, target);
    if (replaced !== undefined) await dropParts(context, replaced);
  });
}

/** Removes the parts of an object that is gone; its index in `trash` is what makes a start repeat this. */
export async function dropParts({ folders, temp }: FolderContext, uploadId: string): Promise<void> {
  await temp.discard(path.join(folders.parts, uploadId));
  await temp.discard(path.join(folders.uploads, uploadId));
  await orNull(['ENOENT'], unlink(path.join(folders.trash, uploadId)));
}

export async function getObject(
  context: FolderContext,
  key: string,
  { range, signal }: { range?: ByteRange; signal?: AbortSignal } = {},
): Promise<ObjectBody> {
  signal?.throwIfAborted();
  const opened = await openObject(context, key);
  if (!opened) throw new ObjectStoreError('no_such_key', 'there is no object with this key');
  const { file, header } = opened;
  try {
    const { start, length } = resolveRange(range, header.sizeBytes);
    const stream =
      header.uploadId === undefined
        ? new ExtentStream(
            [{ open: () => Promise.resolve(file), position: headerBytes + start, length }],
            file,
          )
        : new ExtentStream(partExtents(context, header.uploadId, await readParts(file), { start, length }));
    if (signal) addAbortSignal(signal, stream);
    return { stream, sizeBytes: length, totalBytes: header.sizeBytes, etag: `"${header.etag}"` };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** RFC 9110 §14.1.2: an end past the last byte means the last byte; a start past it cannot be satisfied. */
function resolveRange(range: ByteRange | undefined, totalBytes: number): { start: number; length: number } {
  if (range === undefined) return { start: 0, length: totalBytes };
  const end = Math.min(range.end ?? Infinity, totalBytes - 1);
  const { start } = range;
  if (!Number.isSafeInteger(start) || start < 0 || !(end >= start)) {
    throw new ObjectStoreError('invalid_range', `the range is outside the object's ${totalBytes} bytes`);
  }
  return { start, length: Math.floor(end) - start + 1 };
}

function* partExtents(
  context: FolderContext,
  uploadId: string,
  parts: readonly [partNumber: number, sizeBytes: number][],
  { start, length }: { start: number; length: number },
): Generator<Extent> {
  let partStart = 0;
  const end = start + length;
  for (const [partNumber, sizeBytes] of parts) {
    const from = Math.max(start, partStart);
    const to = Math.min(end, partStart + sizeBytes);
    if (from < to) {
      yield {
        open: () => openPart(context, uploadId, partNumber),
        position: headerBytes + from - partStart,
        length: to - from,
      };
    }
    partStart += sizeBytes;
  }
}

/** Between the object's appearance and the move of its parts these are still with the uploads. */
async function openPart(
  { folders }: FolderContext,
  uploadId: string,
  partNumber: number,
): Promise<FileHandle> {
  for (const folder of [folders.parts, folders.uploads, folders.parts]) {
    const opened = await orNull(absent, openBlob(path.join(folder, uploadId, partName(partNumber))));
    if (opened) return opened.file;
  }
  throw new ObjectStoreError('unavailable', 'a part of the object is gone: it was deleted meanwhile');
}

export async function deleteObjects(context: FolderContext, keys: readonly string[]): Promise<void> {
  for (const key of keys) assertKey(key);
  const touched = await mapLimit(keys, concurrency, (key) =>
    context.lockKey(key, () => deleteObject(context, key)),
  );
  for (const folder of new Set(touched)) await orNull(['ENOENT', 'ENOTDIR'], syncFolder(folder));
}

/** Returns the folder whose entries changed. */
async function deleteObject(context: FolderContext, key: string): Promise<string> {
  const target = objectPath(context, key);
  const header = await headerOf(context, key);
  if (!header) return context.folders.objects;
  if (header.uploadId === undefined) {
    await orNull(['ENOENT'], unlink(target));
  } else {
    await orNull(['ENOENT'], rename(target, path.join(context.folders.trash, header.uploadId)));
    await syncFolder(context.folders.trash);
    await dropParts(context, header.uploadId);
  }
  return pruneUpwards(context.folders.objects, path.dirname(target));
}

export async function listObjects(
  context: FolderContext,
  prefix: string,
  after = '',
): Promise<Page<StoredObject>> {
  const keys: string[] = [];
  for await (const key of listKeys(context.folders.objects, prefix, after)) {
    keys.push(key);
    if (keys.length > context.pageSize) break;
  }
  const page = keys.slice(0, context.pageSize);
  const found = await mapLimit(page, concurrency, async (key) => {
    const header = await headerOf(context, key);
    return header ? toStoredObject(key, header) : null;
  });
  return {
    items: found.filter((item) => item !== null),
    next: keys.length > page.length ? (page.at(-1) ?? null) : null,
  };
}
