import { ObjectStoreError } from './object-store.ts';

const maxKeyLength = 512;
const segment = /^[A-Za-z0-9._-]{1,255}$/;

/** Whether text is a key by the port's grammar (see `ObjectStore`). */
export function isKey(text: string): boolean {
  return (
    text.length <= maxKeyLength &&
    text.split('/').every((part) => segment.test(part) && part !== '.' && part !== '..')
  );
}

/** @throws {ObjectStoreError} `invalid_key` */
export function assertKey(text: string): void {
  if (!isKey(text)) throw new ObjectStoreError('invalid_key', 'the key is not well-formed');
}

/** S3's most parts of one upload. */
export const maxPartNumber = 10_000;

export const isPartNumber = (partNumber: number): boolean =>
  Number.isInteger(partNumber) && partNumber >= 1 && partNumber <= maxPartNumber;

/** @throws {ObjectStoreError} `invalid_part` */
export function assertPartNumber(partNumber: number): void {
  if (!isPartNumber(partNumber)) {
    throw new ObjectStoreError('invalid_part', `a part number is 1 to ${maxPartNumber}`);
  }
}
