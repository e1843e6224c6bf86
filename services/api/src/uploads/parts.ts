import { type HeldPart } from '@millrace/domain';
import { type ObjectStore, ObjectStoreError } from '@millrace/objects';
import { type UploadRow } from '@millrace/store';
import { setImmediate as nextTurn } from 'node:timers/promises';

type StoredUpload = Pick<UploadRow, 'objectKey' | 'storeUploadId' | 'partCount'>;

/** Signing thousands of URLs must not keep every other request waiting. */
const urlsPerTurn = 250;

/** A URL for each part of an upload, good until `expiresAt`. */
export async function presignParts(
  objects: ObjectStore,
  upload: StoredUpload,
  expiresAt: Date,
): Promise<{ partNumber: number; url: string }[]> {
  const parts: { partNumber: number; url: string }[] = [];
  for (let partNumber = 1; partNumber <= upload.partCount; partNumber++) {
    const url = await objects.presignPart({
      key: upload.objectKey,
      uploadId: upload.storeUploadId,
      partNumber,
      expiresAt,
    });
    parts.push({ partNumber, url });
    if (partNumber % urlsPerTurn === 0) await nextTurn();
  }
  return parts;
}

/** Every part that the store holds, by rising number; null when it no longer knows the upload. */
export async function listHeldParts(objects: ObjectStore, upload: StoredUpload): Promise<HeldPart[] | null> {
  const parts: HeldPart[] = [];
  try {
    for (let after: string | undefined; ;) {
      const page = await objects.listParts({
        key: upload.objectKey,
        uploadId: upload.storeUploadId,
        ...(after === undefined ? {} : { after }),
      });
      parts.push(...page.items);
      if (page.next === null) return parts;
      after = page.next;
    }
  } catch (error) {
    if (error instanceof ObjectStoreError && error.code === 'no_such_upload') return null;
    throw error;
  }
}
