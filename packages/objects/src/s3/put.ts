import { type Readable } from 'node:stream';
import { PutObjectCommand, UploadPartCommand } from '@aws-sdk/client-s3';
import { exactly } from '../exact-length.ts';
import { assertKey, maxPartNumber } from '../keys.ts';
import { ObjectStoreError } from '../object-store.ts';
import { abortedBy, quoted, type S3Context } from './context.ts';
import { call } from './errors.ts';
import { type Slice, slices } from './slices.ts';
import { abortUpload, createUpload, joinParts } from './uploads.ts';

interface Put {
  etag: string;
  sizeBytes: number;
}

const mebibyte = 1024 ** 2;
/** How long a put that failed, or was aborted, goes on to clean up. */
const cleanUpMs = 10_000;

/**
 * Stores an object. A stream goes in slices that are held in memory, so that each request can be repeated and the
 * length need not be known: what fits into one slice is one request, what does not is a multipart upload.
 */
export async function putObject(
  context: S3Context,
  key: string,
  body: Buffer | Readable,
  { signal, sizeBytes }: { signal?: AbortSignal; sizeBytes?: number } = {},
): Promise<Put> {
  assertKey(key);
  signal?.throwIfAborted();
  if (Buffer.isBuffer(body)) return putWhole(context, key, body, signal);
  // A source that stalls hears of the abort too.
  const onAbort = (): void => {
    body.destroy(signal?.reason as Error);
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const source = sizeBytes === undefined ? body : exactly(body, sizeBytes);
    return await putSlices(context, key, slices(source, sliceBytesFor(context, sizeBytes)), signal);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** All slices have one size, as some servers want of parts; it grows where there would be too many of them. */
function sliceBytesFor({ putPartBytes }: S3Context, sizeBytes = 0): number {
  const least = Math.ceil(sizeBytes / maxPartNumber / mebibyte) * mebibyte;
  return Math.max(putPartBytes, least);
}

async function putSlices(
  context: S3Context,
  key: string,
  source: AsyncIterable<Slice>,
  signal: AbortSignal | undefined,
): Promise<Put> {
  let upload: { key: string; uploadId: string } | null = null;
  const parts: { partNumber: number; etag: string }[] = [];
  let sizeBytes = 0;
  try {
    for await (const { bytes, last } of source) {
      if (last && upload === null) return await putWhole(context, key, bytes, signal);
      upload ??= { key, uploadId: await createUpload(context, key) };
      const partNumber = parts.length + 1;
      parts.push({ partNumber, etag: await putPart(context, { ...upload, partNumber, bytes }, signal) });
      sizeBytes += bytes.length;
    }
    if (upload === null) throw new Error('a source has at least one slice');
    return { etag: await joinParts(context, upload, parts), sizeBytes };
  } catch (error) {
    // Should this fail too, the sweep of unknown uploads finds it.
    if (upload !== null) {
      await abortUpload(context, upload, AbortSignal.timeout(cleanUpMs)).catch(() => undefined);
    }
    throw asOutage(error);
  }
}

/** Nobody but this put knows of its upload: what became of it is no error of the caller's. */
function asOutage(error: unknown): unknown {
  if (!(error instanceof ObjectStoreError) || error.code === 'invalid_key') return error;
  return new ObjectStoreError('unavailable', `the object was not stored: ${error.message}`, { cause: error });
}

async function putWhole(
  { client, bucket }: S3Context,
  key: string,
  bytes: Buffer,
  signal: AbortSignal | undefined,
): Promise<Put> {
  const command = new PutObjectCommand({
    Bucket: bucket,
    Key: key,
    Body: bytes,
    ContentLength: bytes.length,
  });
  const { ETag } = await call(() => client.send(command, abortedBy(signal)), signal);
  return { etag: quoted(ETag), sizeBytes: bytes.length };
}

async function putPart(
  { client, bucket }: S3Context,
  { key, uploadId, partNumber, bytes }: { key: string; uploadId: string; partNumber: number; bytes: Buffer },
  signal: AbortSignal | undefined,
): Promise<string> {
  assertPartsLeft(partNumber);
  const command = new UploadPartCommand({
    ...{ Bucket: bucket, Key: key, UploadId: uploadId, PartNumber: partNumber },
    ...{ Body: bytes, ContentLength: bytes.length },
  });
  const { ETag } = await call(() => client.send(command, abortedBy(signal)), signal);
  return quoted(ETag);
}

function assertPartsLeft(partNumber: number): void {
  if (partNumber <= maxPartNumber) return;
  throw new RangeError('the stream is longer than S3 takes in parts of this size: tell its length');
}
