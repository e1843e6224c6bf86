import { S3ServiceException } from '@aws-sdk/client-s3';
import { ObjectStoreError, type ObjectStoreErrorCode } from '../object-store.ts';

/** S3's codes that are the port's own; every other answer is `unavailable`. */
const codes: Readonly<Record<string, ObjectStoreErrorCode>> = {
  NoSuchKey: 'no_such_key',
  NoSuchUpload: 'no_such_upload',
  InvalidPart: 'invalid_part',
  InvalidPartOrder: 'invalid_part_order',
  EntityTooSmall: 'part_too_small',
  InvalidRange: 'invalid_range',
  KeyTooLongError: 'invalid_key',
  // Of servers that keep objects as files: `d` and `d/e` cannot both be there.
  ObjectParentIsFile: 'invalid_key',
  ExistingObjectIsDirectory: 'invalid_key',
};

/**
 * Runs one call of the SDK and translates what it throws: the signal's reason when it was aborted, else an
 * `ObjectStoreError` with the SDK's error as its cause.
 */
export async function call<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    throw toObjectStoreError(error);
  }
}

function toObjectStoreError(error: unknown): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  if (!(error instanceof S3ServiceException)) {
    // Of the system and of TLS the code says what it is: refused, unknown, or signed by nobody whom we trust.
    const name =
      error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : typeof error;
    return new ObjectStoreError('unavailable', `the object store did not answer (${name})`, { cause: error });
  }
  const { name, $metadata } = error;
  const status = $metadata.httpStatusCode ?? 0;
  const message = `the object store answered ${status} ${name}`;
  return new ObjectStoreError(codes[name] ?? 'unavailable', message, { cause: error });
}

/** Of a call that is fine when there is no such object; a HEAD tells it by its status alone. */
export async function orAbsent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  if (!(error instanceof ObjectStoreError)) return false;
  // Below an object there can be nothing, where objects are files.
  if (error.code === 'no_such_key' || error.code === 'invalid_key') return true;
  return error.cause instanceof S3ServiceException && error.cause.name === 'NotFound';
}
