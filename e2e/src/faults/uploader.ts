import { randomUUID } from 'node:crypto';
import { ApiError } from '@millrace/client';
import { type Upload } from '@millrace/contract';
import { type Customer } from '../demo/customer.ts';
import { type UploadEntry } from './ledger.ts';
import { persistently } from './persistent.ts';

/** A file to upload, and what must become of its video. */
export interface Film {
  body: Buffer<ArrayBuffer>;
  expected: Exclude<UploadEntry['expected'], 'deleted'>;
  /** Whether the customer takes it back: the upload before it is complete, or the video after that. */
  takenBack?: 'upload' | 'video';
}

const putTimeoutMs = 20_000;

/** Uploads a film whatever happens meanwhile, as a client that repeats what got no answer. */
export async function upload(customer: Customer, film: Film, signal: AbortSignal): Promise<UploadEntry> {
  const { client, projectId } = customer;
  const idempotencyKey = randomUUID();
  const body = { fileName: 'film.mp4', sizeBytes: film.body.length, contentType: 'video/mp4' } as const;
  const started = await persistently(signal, () => client.startUpload({ projectId, body, idempotencyKey }));
  const { id: uploadId, video } = started;
  const etag = await persistently(signal, () => put(started, film.body));
  if (film.takenBack === 'upload') {
    await persistently(signal, () => unlessDone(client.cancelUpload({ projectId, uploadId })));
    return { videoId: video.id, expected: 'deleted' };
  }
  const parts = [{ partNumber: 1, etag }];
  await persistently(signal, () =>
    unlessDone(client.completeUpload({ projectId, uploadId, body: { parts } })),
  );
  if (film.takenBack === undefined) return { videoId: video.id, expected: film.expected };
  await persistently(signal, () => unlessDone(client.deleteVideo({ projectId, videoId: video.id })));
  return { videoId: video.id, expected: 'deleted' };
}

async function put({ parts }: Upload, body: Buffer<ArrayBuffer>): Promise<string> {
  const response = await fetch(parts[0]?.url ?? '', {
    ...{ method: 'PUT', body, signal: AbortSignal.timeout(putTimeoutMs) },
  });
  await response.arrayBuffer();
  const etag = response.headers.get('etag');
  if (!response.ok || etag === null) throw new Error(`a part was answered with ${response.status}`);
  return etag;
}

/** A call whose answer was lost has done its work: repeated, it says so. */
async function unlessDone(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    const isDone =
      error instanceof ApiError && (error.code === 'upload_closed' || error.code === 'not_found');
    if (!isDone) throw error;
  });
}
