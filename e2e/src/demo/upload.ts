import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { type Upload, type Video } from '@millrace/contract';
import { type Customer } from './customer.ts';

type ContentType = 'video/mp4' | 'video/quicktime' | 'video/webm' | 'video/x-matroska';

const contentTypes: Readonly<Record<string, ContentType>> = {
  '.mov': 'video/quicktime',
  '.webm': 'video/webm',
  '.mkv': 'video/x-matroska',
};
/** Parts on their way at once; each is in memory, 64 MiB at most. */
const partsAtOnce = 3;
const partTimeoutMs = 10 * 60_000;

export interface UploadOptions {
  signal?: AbortSignal;
  /** Gets the share that storage has, 0 to 1, after each part. */
  onProgress?: (share: number) => void;
}

type Uploader = Pick<Customer, 'client' | 'projectId'>;

/**
 * Uploads a file straight to storage, several parts at a time, and completes it.
 * @throws ApiError for a refused call, Error for a refused part
 */
export async function uploadFile(
  by: Uploader,
  path: string,
  options: UploadOptions = {},
): Promise<{ video: Video; parts: number }> {
  return finishUpload(by, path, await startUpload(by, path), options);
}

/** Starts the upload of a file, and sends nothing of it. @throws ApiError for a refused call */
export async function startUpload({ client, projectId }: Uploader, path: string): Promise<Upload> {
  return client.startUpload({
    projectId,
    body: {
      fileName: basename(path),
      sizeBytes: (await stat(path)).size,
      // With a key the content decides; the declared type is a formality.
      contentType: contentTypes[extname(path).toLowerCase()] ?? 'video/mp4',
    },
  });
}

/** Sends all parts of an upload that was started, and completes it. @throws as `uploadFile` */
export async function finishUpload(
  { client, projectId }: Uploader,
  path: string,
  upload: Upload,
  { signal, onProgress = () => undefined }: UploadOptions = {},
): Promise<{ video: Video; parts: number }> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const parts: { partNumber: number; etag: string }[] = [];
    await inParallel(upload.parts, signal, async ({ partNumber, url }, either) => {
      const start = (partNumber - 1) * upload.partSizeBytes;
      const body = await read(file, start, Math.min(upload.partSizeBytes, size - start));
      parts.push({ partNumber, etag: await putPart(url, body, either) });
      onProgress(parts.length / upload.parts.length);
    });
    const video = await client.completeUpload({ projectId, uploadId: upload.id, body: { parts } });
    return { video, parts: parts.length };
  } finally {
    await file.close();
  }
}

/** Works through the items. The first error aborts the rest, and is thrown when nothing runs any more. */
async function inParallel<T>(
  items: readonly T[],
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const either = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const queue = items.values();
  const workers = Array.from({ length: partsAtOnce }, async () => {
    try {
      for (const item of queue) {
        either.throwIfAborted();
        await work(item, either);
      }
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  });
  await Promise.allSettled(workers);
  await Promise.all(workers);
}

async function read(file: FileHandle, start: number, length: number): Promise<Buffer<ArrayBuffer>> {
  const body = Buffer.alloc(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(body, done, length - done, start + done);
    if (bytesRead === 0) throw new Error('the file became shorter while it was uploaded');
    done += bytesRead;
  }
  return body;
}

async function putPart(url: string, body: Buffer<ArrayBuffer>, signal: AbortSignal): Promise<string> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(partTimeoutMs)]);
  const response = await fetch(url, { method: 'PUT', body, signal: limited });
  const answer = await response.text();
  const etag = response.headers.get('etag');
  if (!response.ok || etag === null) {
    throw new Error(`PUT of a part answered ${response.status} ${answer.slice(0, 300)}`);
  }
  return etag;
}
