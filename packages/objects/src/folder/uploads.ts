import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import { assertPartNumber } from '../keys.ts';
import { ObjectStoreError, type Page, type StoredPart } from '../object-store.ts';
import { type BlobHeader, readHeader, writeParts } from './blob-file.ts';
import { assertPlaceFree, orNull, syncFolder } from './files.ts';
import { type FolderContext, isUploadId, objectPath, partName } from './layout.ts';
import { mapLimit } from './map-limit.ts';
import { dropParts, headerOf, publishObject, writeTemp } from './objects.ts';

const concurrency = 16;
const recordName = 'upload.json';

interface UploadRecord {
  key: string;
  startedMs: number;
}
interface UploadReference {
  key: string;
  uploadId: string;
}

const noSuchUpload = (): ObjectStoreError =>
  new ObjectStoreError('no_such_upload', 'the upload is closed or unknown');

export async function createUpload(context: FolderContext, key: string): Promise<string> {
  await assertPlaceFree(objectPath(context, key));
  const startedMs = context.clock.now().getTime();
  const uploadId = startedMs.toString(16).padStart(12, '0') + randomBytes(10).toString('hex');
  const folder = context.temp.newPath();
  await mkdir(folder);
  const record = await open(path.join(folder, recordName), 'wx');
  try {
    await record.writeFile(JSON.stringify({ key, startedMs } satisfies UploadRecord));
    await record.datasync();
  } finally {
    await record.close();
  }
  await syncFolder(folder);
  await rename(folder, uploadFolder(context, uploadId));
  await syncFolder(context.folders.uploads);
  return uploadId;
}

/** The bytes that came are not those whose MD5 the sender told. */
export class DigestMismatchError extends Error {
  override readonly name = 'DigestMismatchError';
}

/**
 * Stores one part. Writers of the same part may run at the same time: the last to end wins, whole.
 * @throws {ObjectStoreError} `no_such_upload`, also when it was closed while the bytes came
 * @throws {DigestMismatchError} when the content's MD5 is not `md5` (in hex, when given)
 */
export async function receivePart(
  context: FolderContext,
  part: UploadReference & { partNumber: number; body: AsyncIterable<Buffer>; md5?: string },
): Promise<BlobHeader> {
  const { partNumber, uploadId } = part;
  assertPartNumber(partNumber);
  await assertOpen(context, part);
  return writeTemp(context, part.body, undefined, (file, { etag }) => {
    if (part.md5 !== undefined && part.md5 !== etag)
      throw new DigestMismatchError('the content differs from its MD5');
    return context.lockUpload(uploadId, async () => {
      await assertOpen(context, part);
      const folder = uploadFolder(context, uploadId);
      await rename(file, path.join(folder, partName(partNumber)));
      await syncFolder(folder);
    });
  });
}

export async function listParts(
  context: FolderContext,
  { after, ...upload }: UploadReference & { after?: string },
): Promise<Page<StoredPart>> {
  await assertOpen(context, upload);
  const folder = uploadFolder(context, upload.uploadId);
  const names = await orNull(['ENOENT'], readdir(folder));
  if (!names) throw noSuchUpload();
  const numbers = names
    .filter((name) => name !== recordName)
    .map(Number)
    .filter((number) => number > Number(after ?? 0))
    .sort((a, b) => a - b);
  const page = numbers.slice(0, context.pageSize);
  const items = await mapLimit(page, concurrency, async (partNumber) => {
    const header = await orNull(['ENOENT'], readHeader(path.join(folder, partName(partNumber))));
    if (!header) throw noSuchUpload();
    return { partNumber, etag: `"${header.etag}"`, sizeBytes: header.sizeBytes };
  });
  return { items, next: numbers.length > page.length ? String(page.at(-1)) : null };
}

export async function completeUpload(
  context: FolderContext,
  upload: UploadReference & { parts: readonly { partNumber: number; etag: string }[] },
): Promise<BlobHeader> {
  return context.lockUpload(upload.uploadId, async () => {
    await assertOpen(context, upload);
    const stored = await matchParts(context, upload);
    const header = {
      kind: 'parts' as const,
      etag: multipartEtag(stored.map((part) => part.etag)),
      sizeBytes: stored.reduce((sum, part) => sum + part.sizeBytes, 0),
      modifiedMs: context.clock.now().getTime(),
      uploadId: upload.uploadId,
    };
    const { path: file, file: handle } = await context.temp.create();
    try {
      const list = stored.map((part) => [part.partNumber, part.sizeBytes] as const);
      await writeParts(handle, header, list).finally(() => handle.close());
      // The one step that decides: from here on the object is there and the upload is closed.
      await publishObject(context, file, upload.key);
    } catch (error) {
      await context.temp.discard(file);
      throw error;
    }
    await settle(context, upload.uploadId);
    await dropUnnamed(context, upload.uploadId, new Set(stored.map((part) => partName(part.partNumber))));
    return header;
  });
}

/** The stored parts that the caller names, checked in S3's order. */
async function matchParts(
  context: FolderContext,
  { uploadId, parts }: { uploadId: string; parts: readonly { partNumber: number; etag: string }[] },
): Promise<StoredPart[]> {
  if (parts.length === 0) throw new ObjectStoreError('invalid_part', 'no part is named');
  parts.forEach((part, index) => {
    assertPartNumber(part.partNumber);
    if (part.partNumber <= (parts[index - 1]?.partNumber ?? 0)) {
      throw new ObjectStoreError('invalid_part_order', 'the part numbers do not rise');
    }
  });
  const folder = uploadFolder(context, uploadId);
  const stored = await mapLimit(parts, concurrency, async ({ partNumber, etag }) => {
    const header = await orNull(['ENOENT'], readHeader(path.join(folder, partName(partNumber))));
    if (header?.etag !== etag.replace(/^"(.*)"$/, '$1')) {
      throw new ObjectStoreError('invalid_part', `part ${partNumber} is missing or has another ETag`);
    }
    return { partNumber, etag: header.etag, sizeBytes: header.sizeBytes };
  });
  const small = stored.slice(0, -1).find((part) => part.sizeBytes < context.minPartBytes);
  if (small) throw new ObjectStoreError('part_too_small', `part ${small.partNumber} is too small`);
  return stored;
}

/** S3's: the MD5 of the parts' binary MD5s, and how many they are. */
function multipartEtag(md5s: readonly string[]): string {
  const joined = Buffer.from(md5s.join(''), 'hex');
  return `${createHash('md5').update(joined).digest('hex')}-${md5s.length}`;
}

async function dropUnnamed(
  context: FolderContext,
  uploadId: string,
  kept: ReadonlySet<string>,
): Promise<void> {
  const folder = path.join(context.folders.parts, uploadId);
  for (const name of (await orNull(['ENOENT'], readdir(folder))) ?? []) {
    if (name !== recordName && !kept.has(name)) await orNull(['ENOENT'], unlink(path.join(folder, name)));
  }
}

export async function abortUpload(context: FolderContext, upload: UploadReference): Promise<void> {
  await context.lockUpload(upload.uploadId, async () => {
    if (!(await isOpen(context, upload))) return;
    await context.temp.discard(uploadFolder(context, upload.uploadId));
    await syncFolder(context.folders.uploads);
  });
}

export async function listUploads(
  context: FolderContext,
  after = '',
): Promise<Page<UploadReference & { startedAt: Date }>> {
  const ids = (await readdir(context.folders.uploads)).filter((id) => id > after).sort();
  const page = ids.slice(0, context.pageSize);
  const found = await mapLimit(page, concurrency, async (uploadId) => {
    const record = await readRecord(context, uploadId);
    return record && { key: record.key, uploadId, startedAt: new Date(record.startedMs) };
  });
  return {
    items: found.filter((item) => item !== null),
    next: ids.length > page.length ? (page.at(-1) ?? null) : null,
  };
}

/** Finishes what a killed process had decided but not done: see `FolderContext`. */
export async function recover(context: FolderContext): Promise<void> {
  const { folders } = context;
  await mapLimit(await readdir(folders.uploads), concurrency, async (uploadId) => {
    const record = await readRecord(context, uploadId);
    if (record) await isOpen(context, { key: record.key, uploadId });
  });
  await mapLimit(await readdir(folders.trash), concurrency, async (uploadId) => {
    const record = await readRecord(context, uploadId, folders.parts);
    const current = record && (await headerOf(context, record.key));
    if (current?.uploadId === uploadId) await orNull(['ENOENT'], unlink(path.join(folders.trash, uploadId)));
    else await dropParts(context, uploadId);
  });
}

async function assertOpen(context: FolderContext, upload: UploadReference): Promise<void> {
  if (!(await isOpen(context, upload))) throw noSuchUpload();
}

/** Whether the upload of this key takes parts. One whose object is already there is settled on the way. */
async function isOpen(context: FolderContext, { key, uploadId }: UploadReference): Promise<boolean> {
  if (!isUploadId(uploadId)) return false;
  const record = await readRecord(context, uploadId);
  if (record?.key !== key) return false;
  if ((await headerOf(context, key))?.uploadId !== uploadId) return true;
  await settle(context, uploadId);
  return false;
}

/** Moves the parts of a completed upload to where they stay. */
async function settle(context: FolderContext, uploadId: string): Promise<void> {
  const { uploads, parts } = context.folders;
  await orNull(['ENOENT'], rename(path.join(uploads, uploadId), path.join(parts, uploadId)));
  await syncFolder(uploads);
  await syncFolder(parts);
}

async function readRecord(
  { folders }: FolderContext,
  uploadId: string,
  folder: string = folders.uploads,
): Promise<UploadRecord | null> {
  const text = await orNull(['ENOENT', 'ENOTDIR'], readFile(path.join(folder, uploadId, recordName), 'utf8'));
  return text === null ? null : (JSON.parse(text) as UploadRecord);
}

function uploadFolder({ folders }: FolderContext, uploadId: string): string {
  return path.join(folders.uploads, uploadId);
}
