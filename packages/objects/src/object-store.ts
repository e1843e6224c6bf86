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
  /** Of `head`: the ETag is no digest of the bytes (S3 with keys of KMS), so that it cannot be foretold. */
  opaqueEtag?: true;
}

/** An inclusive byte range, as in RFC 9110 §14.1.2; `end` may lie past the object's last byte. */
export interface ByteRange {
  start: number;
  end?: number;
}

export interface ObjectBody {
  /**
   * The bytes; destroying it closes the connection or file behind it. It fails with an `ObjectStoreError`, or with an
   * `AbortError` when its signal aborts.
   */
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

/** What a part URL is to allow. */
export interface PartUrlInput {
  key: string;
  uploadId: string;
  partNumber: number;
  expiresAt: Date;
  /** The only size of a body that the URL takes; any unless told. */
  sizeBytes?: number;
}

/**
 * Where bytes live (S3's model). Keys are `/`-separated segments of `[A-Za-z0-9._-]`, never `.` or `..`, of at
 * most 255 characters each and 512 in all (`invalid_key` otherwise); no key may be a path prefix of another
 * (`d` and `d/e`): a store may refuse the second of such a pair with `invalid_key`. Objects are never overwritten
 * by Millrace; where it happens all the same, readers see the old or the new object, never a mixture. Every call
 * fails as S3 does, with an `ObjectStoreError`.
 */
export interface ObjectStore {
  /** Begins a multipart upload and returns the store's upload id, an opaque text of at most 1,024 characters. */
  createUpload(key: string): Promise<string>;
  /**
   * A URL that takes bare `PUT`s of one part until `expiresAt`; binds method, key, upload, part, expiry and, when
   * it is given, the exact size of the body. The upload need not exist. Part numbers are 1 to 10,000; a part put
   * again replaces the one before. S3 signs for seven days at most (`RangeError` beyond).
   */
  presignPart(input: PartUrlInput): Promise<string>;
  /** Parts held, by rising number, in pages. `no_such_upload` when it is closed, unknown or of another key. */
  listParts(input: { key: string; uploadId: string; after?: string }): Promise<Page<StoredPart>>;
  /**
   * Joins the parts into the object and closes the upload; parts that are not named are dropped.
   * `invalid_part_order` when the numbers do not rise, `invalid_part` when none is given, one is missing or its
   * ETag differs, `part_too_small` when one but the last is under 5 MiB: the upload stays open then.
   * `no_such_upload` when it is closed or unknown; a second call is answered so or, as S3 does for a while, like the
   * first. After `unavailable` the outcome is unknown: `head` tells whether the object is there.
   */
  complete(input: {
    key: string;
    uploadId: string;
    parts: readonly { partNumber: number; etag: string }[];
  }): Promise<{ etag: string; sizeBytes: number }>;
  /** Drops an upload and its parts. Unknown uploads are fine; a completed one keeps its object. */
  abort(input: { key: string; uploadId: string }): Promise<void>;
  /** Uploads neither completed nor aborted, in the store's own order (S3 sorts by key), in pages. */
  listUploads(after?: string): Promise<Page<{ key: string; uploadId: string; startedAt: Date }>>;
  /**
   * `no_such_key` when absent, `invalid_range` when the range starts past the end. An object deleted meanwhile
   * may fail its stream, never shorten it unnoticed.
   */
  get(key: string, options?: { range?: ByteRange; signal?: AbortSignal }): Promise<ObjectBody>;
  /** Size and ETag, or null when absent. */
  head(key: string): Promise<StoredObject | null>;
  /**
   * Stores an object atomically: readers see all of it or nothing. `sizeBytes` is what a stream will give, where
   * that is known: a stream of another length fails the put, and S3 needs it past 150 GiB. A source's own error is
   * passed on as it is.
   */
  put(
    key: string,
    body: Buffer | Readable,
    options?: { signal?: AbortSignal; sizeBytes?: number },
  ): Promise<{ etag: string; sizeBytes: number }>;
  /** Deletes; absent keys are fine. `unavailable` when some are left, for which others may be gone. */
  deleteMany(keys: readonly string[]): Promise<void>;
  /** Objects whose key begins with `prefix`, by rising key, in pages. */
  list(prefix: string, after?: string): Promise<Page<StoredObject>>;
  /** Rejects when the store cannot be reached or, unless it was opened to be read only, written; for readiness. */
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
