import { createHash, randomBytes } from 'node:crypto';
import { type ObjectStore, type Page } from '../object-store.ts';

/** An adapter under test, with the server behind its part URLs running. */
export interface ObjectStoreHarness {
  store: ObjectStore;
  /** The page size that the adapter was made with; small, so that a few entries make several pages. */
  pageSize: number;
  close(): Promise<void>;
}

const minPartBytes = 5 * 1024 ** 2;

export const md5 = (bytes: Buffer): string => createHash('md5').update(bytes).digest('hex');

/** The ETag of a body as the store tells it: quoted. */
export const etagOf = (bytes: Buffer): string => `"${md5(bytes)}"`;

/** A part that another may follow: random, so that mixed bytes would be seen. */
export const fullPart = (): Buffer => randomBytes(minPartBytes);

/** A folder of its own for each test: the store may be shared. */
export const newPrefix = (): string => `conformance/${randomBytes(8).toString('hex')}`;

export async function readAll(
  store: ObjectStore,
  key: string,
  range?: { start: number; end?: number },
): Promise<Buffer> {
  const body = await store.get(key, range ? { range } : {});
  const chunks = (await body.stream.toArray()) as Buffer[];
  return Buffer.concat(chunks);
}

/** Every entry of all pages. */
export async function allPages<T>(page: (after?: string) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | null | undefined; after !== null;) {
    const answer: Page<T> = await page(after);
    items.push(...answer.items);
    after = answer.next;
  }
  return items;
}

/** One bare PUT, as the upload page of a browser does it. */
export function put(
  url: string,
  body: Buffer | string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url, { method: 'PUT', body: typeof body === 'string' ? body : new Uint8Array(body), headers });
}

/** Presigns and puts one part; returns what `complete` takes. */
export async function putPart(
  store: ObjectStore,
  upload: { key: string; uploadId: string },
  partNumber: number,
  body: Buffer,
): Promise<{ partNumber: number; etag: string }> {
  const response = await put(await presign(store, upload, partNumber), body);
  if (response.status !== 200)
    throw new Error(`part ${partNumber}: ${response.status} ${await response.text()}`);
  return { partNumber, etag: response.headers.get('etag') ?? '' };
}

export function presign(
  store: ObjectStore,
  upload: { key: string; uploadId: string },
  partNumber: number,
): Promise<string> {
  return store.presignPart({ ...upload, partNumber, expiresAt: new Date(Date.now() + 3_600_000) });
}
