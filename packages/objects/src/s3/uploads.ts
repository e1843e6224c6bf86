import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
} from '@aws-sdk/client-s3';
import { assertKey, isPartNumber } from '../keys.ts';
import { ObjectStoreError, type Page, type StoredPart } from '../object-store.ts';
import { abortedBy, quoted, type S3Context } from './context.ts';
import { call } from './errors.ts';
import { headObject } from './objects.ts';

export interface UploadReference {
  key: string;
  uploadId: string;
}

/** Parts that come while an upload is aborted may be stored after it: S3 asks to abort until none is left. */
const abortRounds = 5;

const target = ({ bucket }: S3Context, { key, uploadId }: UploadReference) => ({
  Bucket: bucket,
  Key: key,
  UploadId: uploadId,
});

export async function createUpload({ client, bucket }: S3Context, key: string): Promise<string> {
  assertKey(key);
  const command = new CreateMultipartUploadCommand({ Bucket: bucket, Key: key });
  const { UploadId } = await call(() => client.send(command));
  if (!UploadId) throw new ObjectStoreError('unavailable', 'the answer tells no upload id');
  return UploadId;
}

export async function listParts(
  context: S3Context,
  { after, ...upload }: UploadReference & { after?: string },
): Promise<Page<StoredPart>> {
  const { items, next } = await partsPage(context, upload, { after, most: context.pageSize });
  return { items, next };
}

async function partsPage(
  context: S3Context,
  upload: UploadReference,
  { after, most, signal }: { after?: string | undefined; most: number; signal?: AbortSignal | undefined },
): Promise<Page<StoredPart>> {
  const command = new ListPartsCommand({
    ...target(context, upload),
    MaxParts: most,
    ...(after === undefined ? {} : { PartNumberMarker: after }),
  });
  const answer = await call(() => context.client.send(command, abortedBy(signal)), signal);
  const items = (answer.Parts ?? []).map((part) => ({
    partNumber: part.PartNumber ?? 0,
    etag: quoted(part.ETag),
    sizeBytes: part.Size ?? 0,
  }));
  const last = answer.NextPartNumberMarker ?? String(items.at(-1)?.partNumber);
  return { items, next: answer.IsTruncated === true && items.length > 0 ? last : null };
}

export async function completeUpload(
  context: S3Context,
  { parts, ...upload }: UploadReference & { parts: readonly { partNumber: number; etag: string }[] },
): Promise<{ etag: string; sizeBytes: number }> {
  const etag = await joinParts(context, upload, parts);
  // The answer does not tell the size.
  const object = await headObject(context, upload.key);
  if (object?.etag === etag) return { etag, sizeBytes: object.sizeBytes };
  // Servers answer a repeated call like the first, whatever parts it names and whatever became of the object.
  throw new ObjectStoreError(
    'no_such_upload',
    'the upload was joined before, and its object is another or gone',
  );
}

/** Joins the parts and returns the object's ETag. */
export async function joinParts(
  context: S3Context,
  upload: UploadReference,
  parts: readonly { partNumber: number; etag: string }[],
): Promise<string> {
  const fault = faultOf(parts);
  if (fault !== null) {
    // An upload that is closed is told first.
    await partsPage(context, upload, { most: 1 });
    throw fault;
  }
  const command = new CompleteMultipartUploadCommand({
    ...target(context, upload),
    MultipartUpload: { Parts: parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag })) },
  });
  const { joinMs } = context.limits;
  const { ETag } = await call(() =>
    context.client.send(command, { requestTimeout: joinMs, abortSignal: AbortSignal.timeout(joinMs) }),
  );
  // S3 sends the head before it begins to join, so a failure comes with status 200; the SDK misses some of them.
  if (!ETag) throw new ObjectStoreError('unavailable', 'the parts were not joined, though the status is 200');
  return quoted(ETag);
}

/** What servers see differently, or refuse as bad XML. */
function faultOf(parts: readonly { partNumber: number }[]): ObjectStoreError | null {
  if (parts.length === 0) return new ObjectStoreError('invalid_part', 'no part is named');
  const numbers = parts.map((part) => part.partNumber);
  if (!numbers.every(isPartNumber))
    return new ObjectStoreError('invalid_part', 'a part has a number out of range');
  const rise = numbers.every((number, index) => number > (numbers[index - 1] ?? 0));
  return rise ? null : new ObjectStoreError('invalid_part_order', 'the part numbers do not rise');
}

/** Drops an upload, again while parts that were under way have come to it. */
export async function abortUpload(
  context: S3Context,
  upload: UploadReference,
  signal?: AbortSignal,
): Promise<void> {
  for (let round = 0; round < abortRounds; round += 1) {
    const command = new AbortMultipartUploadCommand(target(context, upload));
    if (await isGone(call(() => context.client.send(command, abortedBy(signal)), signal))) return;
    const left = partsPage(context, upload, { most: 1, signal });
    if ((await isGone(left)) || (await left).items.length === 0) return;
  }
  throw new ObjectStoreError('unavailable', 'parts keep coming to the aborted upload');
}

async function isGone(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'no_such_upload') return true;
    throw error;
  }
}

type UploadsPage = Page<UploadReference & { startedAt: Date }>;

/** Pages go on after a key and an upload of it: there may be several. */
export async function listUploads(context: S3Context, after?: string): Promise<UploadsPage> {
  if (after === undefined) return uploadsPage(context, {});
  const [key, uploadId] = JSON.parse(after) as [string, string?];
  if (uploadId === undefined) return uploadsPage(context, { KeyMarker: key });
  try {
    return await uploadsPage(context, { KeyMarker: key, UploadIdMarker: uploadId });
  } catch (error) {
    // Some servers refuse an upload that was ended meanwhile, and versitygw 1.8 each: then the next key is next.
    if (nameOfCause(error) !== 'InvalidArgument') throw error;
    return uploadsPage(context, { KeyMarker: key });
  }
}

async function uploadsPage(
  { client, bucket, pageSize }: S3Context,
  markers: { KeyMarker?: string; UploadIdMarker?: string },
): Promise<UploadsPage> {
  const command = new ListMultipartUploadsCommand({ Bucket: bucket, MaxUploads: pageSize, ...markers });
  const {
    Uploads = [],
    IsTruncated,
    NextKeyMarker,
    NextUploadIdMarker,
  } = await call(() => client.send(command));
  const items = Uploads.map((upload) => ({
    key: upload.Key ?? '',
    uploadId: upload.UploadId ?? '',
    startedAt: upload.Initiated ?? new Date(),
  }));
  const more = IsTruncated === true && NextKeyMarker !== undefined;
  return { items, next: more ? JSON.stringify([NextKeyMarker, NextUploadIdMarker]) : null };
}

const nameOfCause = (error: unknown): unknown => ((error as Error).cause as Error | undefined)?.name;
