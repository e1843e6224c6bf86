import { type Readable } from 'node:stream';

/** One part of a multipart upload as the store holds it. `etag` is quoted, as in the HTTP header. */
export interface StoredPart {
  partNumber: number;
  etag: string;
  sizeBytes: number;
}

export interface StoredObject {
  key: string;
  sizeBytes: number;
  etag: string;
  lastModified: Date;
}

/** An inclusive byte range, as in RFC 9110 §14.1.2; `end` may lie past the object's last byte. */
export interface ByteRange {
  start: number;
  end?: number;
}

export interface ObjectBody {
  /** The bytes; destroying it closes the connection or file behind it. */
  stream: Readable;
  /** Length of this body (of the range, when one was asked for). */
  sizeBytes: number;
  /** Length of the whole object. */
  totalBytes: number;
  etag: string;
}

export interface Page<T> {
  items: readonly T[];
  /** Pass back to go on; null on the last page. */
  next: string | null;
}

/**
 * Where bytes live (S3's model). Keys are `/`-separated segments of `[A-Za-z0-9._-]`, never `.` or `..`,
 * at most 512 characters; no key may be a path prefix of another. Objects are never overwritten by
 * Millrace. Every call takes what S3 takes and fails as S3 does.
 */
export interface ObjectStore {
  /** Begins a multipart upload and returns the store's upload id. */
  createUpload(key: string): Promise<string>;
  /** A URL that takes one bare `PUT` of one part until `expiresAt`; binds method, upload, part and expiry. */
  presignPart(input: { key: string; uploadId: string; partNumber: number; expiresAt: Date }): Promise<string>;
  /** Parts held, by rising number, in pages. `no_such_upload` when it is closed or unknown. */
  listParts(input: { key: string; uploadId: string; after?: string }): Promise<Page<StoredPart>>;
  /**
   * Joins the parts into the object. `invalid_part` when a part is missing or its ETag differs,
   * `part_too_small` when one but the last is under 5 MiB, `invalid_part_order`, `no_such_upload`.
   */
  complete(input: {
    key: string;
    uploadId: string;
    parts: readonly { partNumber: number; etag: string }[];
  }): Promise<{ etag: string; sizeBytes: number }>;
  /** Drops an upload and its parts. Unknown uploads are fine. */
  abort(input: { key: string; uploadId: string }): Promise<void>;
  /** Uploads neither completed nor aborted, oldest first, in pages. */
  listUploads(after?: string): Promise<Page<{ key: string; uploadId: string; startedAt: Date }>>;
  /** `no_such_key` when absent, `invalid_range` when the range starts past the end. */
  get(key: string, options?: { range?: ByteRange; signal?: AbortSignal }): Promise<ObjectBody>;
  /** Size and ETag, or null when absent. */
  head(key: string): Promise<StoredObject | null>;
  /** Stores an object atomically: readers see all of it or nothing. */
  put(
    key: string,
    body: Buffer | Readable,
    options?: { signal?: AbortSignal },
  ): Promise<{ etag: string; sizeBytes: number }>;
  /** Deletes; absent keys are fine. */
  deleteMany(keys: readonly string[]): Promise<void>;
  /** Objects whose key begins with `prefix`, by rising key, in pages. */
  list(prefix: string, after?: string): Promise<Page<StoredObject>>;
  /** Rejects when the store cannot be reached or written; for readiness. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export type ObjectStoreErrorCode =
  | 'no_such_key'
  | 'no_such_upload'
  | 'invalid_part'
  | 'invalid_part_order'
  | 'part_too_small'
  | 'invalid_range'
  | 'invalid_key'
  | 'unavailable';

/** What every adapter throws: its driver's error translated, with `cause`. Only `unavailable` is worth a retry. */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError';
  readonly code: ObjectStoreErrorCode;
  constructor(code: ObjectStoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
