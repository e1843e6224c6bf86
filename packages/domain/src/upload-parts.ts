import { type FieldError } from '@millrace/contract';
import { createHash } from 'node:crypto';

const mebibyte = 1024 * 1024;
/** Sizes of parts: a multiple of the step within the bounds (contract UPL-005). */
const partStep = 8 * mebibyte;
const smallestPart = 16 * mebibyte;
const largestPart = 64 * mebibyte;
const mostParts = 8_000;
/** What S3 asks of every part but the last. */
const leastStoredPart = 5 * mebibyte;

/** The largest file that can be uploaded, whatever a plan allows: 500 GiB. */
export const largestUploadBytes = mostParts * largestPart;

/**
 * How a file of this many bytes is cut: the smallest part size that needs no more parts than allowed.
 * @throws RangeError above `largestUploadBytes` or below one byte
 */
export function partLayout(sizeBytes: number): { partSizeBytes: number; partCount: number } {
  if (sizeBytes < 1 || sizeBytes > largestUploadBytes)
    throw new RangeError(`no parts for ${sizeBytes} bytes`);
  const partSizeBytes = Math.max(smallestPart, Math.ceil(sizeBytes / mostParts / partStep) * partStep);
  return { partSizeBytes, partCount: Math.ceil(sizeBytes / partSizeBytes) };
}

/** A part as the customer names it in the complete call. */
export interface NamedPart {
  partNumber: number;
  etag: string;
}

/** A part as the store holds it. */
export interface HeldPart extends NamedPart {
  sizeBytes: number;
}

/** An ETag in the one spelling of the HTTP header; customers may leave the quotes off. */
const quotedEtag = (etag: string): string => (etag.startsWith('"') ? etag : `"${etag}"`);

export type PartsVerdict<P extends NamedPart = HeldPart> =
  /** The parts to join, by rising number, ETags as the store spells them. */
  { ok: true; parts: P[]; sizeBytes: number } | { ok: false; errors: FieldError[] };

/** How many faults are told at once. */
const mostErrors = 20;

/**
 * Compares the list of a complete call with what the store holds: it must name exactly the stored parts,
 * contiguous from 1, in any order, each with its ETag; all but the last of at least 5 MiB.
 */
export function checkParts(named: readonly NamedPart[], held: readonly HeldPart[]): PartsVerdict {
  if (named.length === 0) return { ok: false, errors: [{ path: 'parts', message: 'names no part' }] };
  const errors = [...listFaults(named), ...contentFaults(named, held)];
  if (errors.length > 0) return { ok: false, errors: errors.slice(0, mostErrors) };
  const parts = inOrder(held);
  return { ok: true, parts, sizeBytes: parts.reduce((sum, part) => sum + part.sizeBytes, 0) };
}

/** An object that was joined of parts. */
export interface JoinedObject {
  etag: string;
  sizeBytes: number;
  /** The ETag is no digest. */
  opaqueEtag?: true;
}

/**
 * Compares the list of a complete call with the object that its parts were joined to already, when the store has no
 * parts any more. An ETag that is no digest cannot tell; the object's key is the upload's alone, so it is believed.
 */
export function checkJoined(named: readonly NamedPart[], object: JoinedObject): PartsVerdict<NamedPart> {
  const faults = named.length === 0 ? [{ path: 'parts', message: 'names no part' }] : listFaults(named);
  if (faults.length > 0) return { ok: false, errors: faults };
  const same = object.opaqueEtag === true || object.etag === multipartEtag(named);
  if (!same) return { ok: false, errors: [{ path: 'parts', message: 'are not what was uploaded' }] };
  const parts = inOrder(named).map(({ partNumber, etag }) => ({ partNumber, etag: quotedEtag(etag) }));
  return { ok: true, parts, sizeBytes: object.sizeBytes };
}

/** True when two lists name the same parts, in any order. */
export function areSameParts(some: readonly NamedPart[], others: readonly NamedPart[]): boolean {
  const spelled = (parts: readonly NamedPart[]): string =>
    JSON.stringify(inOrder(parts).map(({ partNumber, etag }) => [partNumber, quotedEtag(etag)]));
  return spelled(some) === spelled(others);
}

const inOrder = <P extends NamedPart>(parts: readonly P[]): P[] =>
  parts.toSorted((a, b) => a.partNumber - b.partNumber);

/** Faults of the list alone: a number twice, a gap. */
function listFaults(named: readonly NamedPart[]): FieldError[] {
  const numbers = new Set<number>();
  const errors: FieldError[] = [];
  for (const [index, { partNumber }] of named.entries()) {
    if (numbers.has(partNumber)) {
      errors.push({ path: `parts[${index}].partNumber`, message: `part ${partNumber} is named twice` });
    }
    numbers.add(partNumber);
  }
  for (let number = 1; number <= Math.max(...numbers) && errors.length < mostErrors; number++) {
    if (!numbers.has(number)) errors.push({ path: 'parts', message: `part ${number} is missing` });
  }
  return errors;
}

/** Faults against the store: parts it lacks, others it has, wrong ETags, parts too small. */
function contentFaults(named: readonly NamedPart[], held: readonly HeldPart[]): FieldError[] {
  const byNumber = new Map(held.map((part) => [part.partNumber, part]));
  const last = Math.max(0, ...named.map((part) => part.partNumber));
  const errors: FieldError[] = [];
  for (const [index, { partNumber, etag }] of named.entries()) {
    const part = byNumber.get(partNumber);
    if (!part) {
      errors.push({ path: `parts[${index}].partNumber`, message: `part ${partNumber} was not uploaded` });
    } else if (part.etag !== quotedEtag(etag)) {
      errors.push({ path: `parts[${index}].etag`, message: `is not the ETag of part ${partNumber}` });
    } else if (partNumber < last && part.sizeBytes < leastStoredPart) {
      errors.push({
        path: `parts[${index}].partNumber`,
        message: `part ${partNumber} has ${part.sizeBytes} bytes; every part but the last needs ${leastStoredPart}`,
      });
    }
  }
  const names = new Set(named.map((part) => part.partNumber));
  for (const { partNumber } of held) {
    if (!names.has(partNumber)) {
      errors.push({ path: 'parts', message: `part ${partNumber} was uploaded but is not named` });
    }
  }
  return errors;
}

/**
 * The ETag that the store gives the object joined of these parts (S3: MD5 of the parts' MD5s, then their
 * number). Tells whose parts an object was made of when the answer to joining them was lost.
 */
export function multipartEtag(parts: readonly NamedPart[]): string {
  const hash = createHash('md5');
  for (const { etag } of inOrder(parts)) {
    hash.update(Buffer.from(quotedEtag(etag).slice(1, -1), 'hex'));
  }
  return `"${hash.digest('hex')}-${parts.length}"`;
}
