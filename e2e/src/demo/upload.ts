import { open, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { basename } from 'node:path/posix';
import { type Video } from '@millrace/contract';
import { type Customer } from './customer.ts';

type ContentType = 'video/mp4' | 'video/quicktime' | 'video/webm' | 'video/x-matroska';

const contentTypes: Readonly<Record<string, ContentType>> = {
  '.mov': 'video/quicktime',
  '.webm': 'video/webm',
  '.mkv': 'video/x-matroska',
};

/** Uploads a file part by part, straight to storage, and completes it. `onProgress` gets 0 to 1. */
export async function uploadFile(
  { client, projectId }: Pick<Customer, 'client' | 'projectId'>,
  path: string,
  onProgress: (share: number) => void,
): Promise<{ video: Video; parts: number }> {
  const { size } = await stat(path);
  const upload = await client.startUpload({
    projectId,
    body: {
      fileName: basename(path),
      sizeBytes: size,
      // With a key the content decides; the declared type is a formality.
      contentType: contentTypes[extname(path).toLowerCase()] ?? 'video/mp4',
    },
  });
  const file = await open(path);
  try {
    const parts: { partNumber: number; etag: string }[] = [];
    for (const { partNumber, url } of upload.parts) {
      const start = (partNumber - 1) * upload.partSizeBytes;
      const body = Buffer.alloc(Math.min(upload.partSizeBytes, size - start));
      await file.read(body, 0, body.length, start);
      parts.push({ partNumber, etag: await putPart(url, body) });
      onProgress(partNumber / upload.parts.length);
    }
    const video = await client.completeUpload({ projectId, uploadId: upload.id, body: { parts } });
    return { video, parts: parts.length };
  } finally {
    await file.close();
  }
}

async function putPart(url: string, body: Buffer<ArrayBuffer>): Promise<string> {
  const response = await fetch(url, { method: 'PUT', body });
  const etag = response.headers.get('etag');
  if (!response.ok || etag === null)
    throw new Error(`PUT of a part answered ${response.status} ${await response.text()}`);
  return etag;
}
