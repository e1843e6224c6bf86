import { type IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
} from '@aws-sdk/client-s3';
import { assertKey } from '../keys.ts';
import {
  type ByteRange,
  type ObjectBody,
  ObjectStoreError,
  type Page,
  type StoredObject,
} from '../object-store.ts';
import { BodyStream } from './body-stream.ts';
import { abortedBy, quoted, type S3Context } from './context.ts';
import { call, orAbsent } from './errors.ts';

/** S3 deletes as many keys by one request. */
const deletedAtOnce = 1_000;

export async function getObject(
  { client, bucket, limits }: S3Context,
  key: string,
  { range, signal }: { range?: ByteRange; signal?: AbortSignal } = {},
): Promise<ObjectBody> {
  assertKey(key);
  const command = new GetObjectCommand({
    Bucket: bucket,
    Key: key,
    ...(range === undefined ? {} : { Range: rangeHeader(range) }),
  });
  const answer = await orAbsent(call(() => client.send(command, abortedBy(signal)), signal));
  if (answer === null) throw new ObjectStoreError('no_such_key', 'there is no object with this key');
  // In Node.js it is the answer itself.
  const body = answer.Body as unknown as IncomingMessage;
  try {
    const { sizeBytes, totalBytes } = lengthsOf(answer, range);
    const stream = new BodyStream(body, limits.idleMs);
    if (signal) addAbortSignal(signal, stream);
    return { stream, sizeBytes, totalBytes, etag: quoted(answer.ETag) };
  } catch (error) {
    body.destroy();
    throw error;
  }
}

function rangeHeader({ start, end }: ByteRange): string {
  // S3 takes a range that is none for no range, and sends the whole object.
  if (!Number.isSafeInteger(start) || start < 0 || (end !== undefined && !(end >= start))) {
    throw new ObjectStoreError('invalid_range', 'the range has no bytes');
  }
  return `bytes=${start}-${end === undefined ? '' : Math.min(Math.floor(end), Number.MAX_SAFE_INTEGER)}`;
}

function lengthsOf(
  { ContentLength: sizeBytes, ContentRange: told }: GetObjectCommandOutput,
  range: ByteRange | undefined,
): { sizeBytes: number; totalBytes: number } {
  if (sizeBytes === undefined) throw new ObjectStoreError('unavailable', 'the answer tells no length');
  if (range === undefined) return { sizeBytes, totalBytes: sizeBytes };
  const [, start, , total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(told ?? '') ?? [];
  if (total === undefined || Number(start) !== range.start) {
    throw new ObjectStoreError('unavailable', 'the answer is not the range that was asked for');
  }
  return { sizeBytes, totalBytes: Number(total) };
}

export async function headObject({ client, bucket }: S3Context, key: string): Promise<StoredObject | null> {
  assertKey(key);
  const answer = await orAbsent(call(() => client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }))));
  return (
    answer && {
      key,
      sizeBytes: answer.ContentLength ?? 0,
      etag: quoted(answer.ETag),
      lastModified: answer.LastModified ?? new Date(0),
      ...(answer.ServerSideEncryption?.startsWith('aws:kms') && { opaqueEtag: true as const }),
    }
  );
}

export async function deleteObjects(context: S3Context, keys: readonly string[]): Promise<void> {
  for (const key of keys) assertKey(key);
  const left: string[] = [];
  for (let start = 0; start < keys.length; start += deletedAtOnce) {
    left.push(...(await deleteBatch(context, keys.slice(start, start + deletedAtOnce))));
  }
  const [first] = left;
  if (first === undefined) return;
  throw new ObjectStoreError('unavailable', `${left.length} objects were not deleted: ${first}`);
}

/** Returns the keys that are still there, each with the reason. */
async function deleteBatch({ client, bucket }: S3Context, keys: readonly string[]): Promise<string[]> {
  const command = new DeleteObjectsCommand({
    Bucket: bucket,
    Delete: { Quiet: true, Objects: keys.map((Key) => ({ Key })) },
  });
  const { Errors = [] } = await call(() => client.send(command));
  return Errors.filter(({ Code }) => Code !== 'NoSuchKey').map(
    ({ Key, Code }) => `${Key ?? '?'} (${Code ?? '?'})`,
  );
}

export async function listObjects(
  { client, bucket, pageSize }: S3Context,
  prefix: string,
  after?: string,
): Promise<Page<StoredObject>> {
  const command = new ListObjectsV2Command({
    Bucket: bucket,
    Prefix: prefix,
    MaxKeys: pageSize,
    ...(after === undefined ? {} : { StartAfter: after }),
  });
  const { Contents = [], IsTruncated } = await call(() => client.send(command));
  const items = Contents.map((item) => ({
    key: item.Key ?? '',
    sizeBytes: item.Size ?? 0,
    etag: quoted(item.ETag),
    lastModified: item.LastModified ?? new Date(0),
  }));
  return { items, next: IsTruncated === true ? (items.at(-1)?.key ?? null) : null };
}
