import { statfs } from 'node:fs/promises';
import { type Clock, type Logger } from '@millrace/platform';
import { assertKey, assertPartNumber } from '../keys.ts';
import { type ObjectStore, ObjectStoreError } from '../object-store.ts';
import { toStoredObject } from './blob-file.ts';
import { translate } from './files.ts';
import { openFolders } from './layout.ts';
import { deleteObjects, getObject, headerOf, listObjects, putObject, writeTemp } from './objects.ts';
import { createPartUrls, type PartTarget, type PartUrlKeys, type PartUrls } from './part-urls.ts';
import {
  abortUpload,
  completeUpload,
  createUpload,
  listParts,
  listUploads,
  receivePart,
  recover,
} from './uploads.ts';

export interface FolderObjectStoreOptions {
  /** The folder that holds everything; made when missing. One service at a time writes to it. */
  root: string;
  /** Where clients reach the server of part URLs; a function where its port is known only later. */
  publicUrl: string | (() => string);
  /** Sign part URLs; `KeySet` of the domain fits. */
  keys: PartUrlKeys;
  clock: Clock;
  logger: Logger;
  /** Entries of a page of any list; 1,000 unless told. */
  pageSize?: number;
  /** Of every part but the last, in bytes; 5 MiB unless told. */
  minPartBytes?: number;
  /** With less free space on the disk, in bytes, nothing is accepted; 256 MiB unless told. */
  minFreeBytes?: number;
}

export interface FolderObjectStore extends ObjectStore {
  readonly partUrls: PartUrls;
  /**
   * Stores a part as its URL allows. `sizeBytes` is what the body will have, `md5` (hex) what it must have.
   * @throws {ObjectStoreError} `no_such_upload`, `unavailable` (no space, or the disk failed)
   * @throws {DigestMismatchError} when the MD5 differs
   */
  receivePart(
    part: PartTarget & { body: AsyncIterable<Buffer>; sizeBytes: number; md5?: string },
  ): Promise<{ etag: string; sizeBytes: number }>;
  /** Of the disk that holds the folder, in bytes. */
  diskSpace(): Promise<{ freeBytes: number; totalBytes: number }>;
}

/**
 * Opens a folder as an object store: makes what is missing, sweeps half-written files, and finishes what a killed
 * process had decided. What a call acknowledged is on disk (fsync) before it resolves.
 */
export async function createFolderObjectStore(options: FolderObjectStoreOptions): Promise<FolderObjectStore> {
  const { root, publicUrl, keys, clock, logger, minFreeBytes = 256 * 1024 ** 2 } = options;
  const context = await openFolders(root, {
    clock,
    pageSize: options.pageSize ?? 1_000,
    minPartBytes: options.minPartBytes ?? 5 * 1024 ** 2,
  });
  await recover(context);
  const urlBase = typeof publicUrl === 'string' ? () => publicUrl : publicUrl;
  const partUrls = createPartUrls({ publicUrl: urlBase, keys, clock });

  const run = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const translated = translate(error);
      if (translated !== error && translated instanceof ObjectStoreError) {
        logger.error({ err: error }, 'object folder failed');
      }
      throw translated;
    }
  };
  const diskSpace = async (): Promise<{ freeBytes: number; totalBytes: number }> => {
    const { bavail, blocks, bsize } = await statfs(context.folders.objects);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  };
  const requireSpace = async (sizeBytes: number): Promise<void> => {
    const { freeBytes } = await diskSpace();
    if (freeBytes - sizeBytes >= minFreeBytes) return;
    throw new ObjectStoreError('unavailable', `the disk of the object folder has ${freeBytes} bytes left`);
  };

  return {
    partUrls,
    createUpload: (key) => run(() => createUpload(context, key)),
    presignPart: async (target) => {
      assertKey(target.key);
      assertPartNumber(target.partNumber);
      return Promise.resolve(partUrls.sign(target));
    },
    receivePart: (part) =>
      run(async () => {
        await requireSpace(part.sizeBytes);
        const { etag, sizeBytes } = await receivePart(context, part);
        return { etag: `"${etag}"`, sizeBytes };
      }),
    listParts: (input) => run(() => listParts(context, input)),
    complete: (input) =>
      run(async () => {
        const { etag, sizeBytes } = await completeUpload(context, input);
        return { etag: `"${etag}"`, sizeBytes };
      }),
    abort: (input) => run(() => abortUpload(context, input)),
    listUploads: (after) => run(() => listUploads(context, after)),
    get: (key, getOptions) => run(() => getObject(context, key, getOptions)),
    head: (key) =>
      run(async () => {
        const header = await headerOf(context, key);
        return header && toStoredObject(key, header);
      }),
    put: (key, body, putOptions) =>
      run(async () => {
        await requireSpace(putOptions?.sizeBytes ?? 0);
        const { etag, sizeBytes } = await putObject(context, key, body, putOptions);
        return { etag: `"${etag}"`, sizeBytes };
      }),
    deleteMany: (doomed) => run(() => deleteObjects(context, doomed)),
    list: (prefix, after) => run(() => listObjects(context, prefix, after)),
    check: () =>
      run(async () => {
        await writeTemp(context, Buffer.from('probe'), undefined, (file) => context.temp.discard(file));
        await requireSpace(0);
      }),
    diskSpace: () => run(diskSpace),
    close: () => run(() => context.temp.close()),
  };
}
