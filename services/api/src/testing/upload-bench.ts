import { type ResumedUpload, type Upload, type Video } from '@millrace/contract';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSecretKey } from 'node:crypto';
import { type ObjectStore, type StoredObject } from '@millrace/objects';
import { createFolderObjectStore, createFolderStoreServer } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';
import { type Answer, createTestApi, type Tenant, type TestApi } from './test-api.ts';

export const MiB = 1024 ** 2;

/** What a test may do around one call of the object store; throwing fails the call. */
interface StoreHooks {
  beforeComplete?: () => void | Promise<void>;
  afterComplete?: () => void | Promise<void>;
  beforeList?: () => void | Promise<void>;
  afterCreate?: () => void | Promise<void>;
}

export interface UploadBench {
  api: TestApi;
  objects: ObjectStore;
  hooks: StoreHooks;
  /** Multipart uploads that are open in the store. */
  storeUploads(): Promise<string[]>;
  storedObjects(): Promise<StoredObject[]>;
  close(): Promise<void>;
}

/** A real object store that a bench works on. */
export interface BenchStore {
  store: ObjectStore;
  close(): Promise<void>;
}

/** A folder store whose part URLs answer on a socket. */
async function openFolder(): Promise<BenchStore> {
  const root = await mkdtemp(path.join(tmpdir(), 'millrace-api-objects-'));
  const key = createSecretKey(randomBytes(32));
  const port = { number: 0 };
  const store = await createFolderObjectStore({
    root,
    publicUrl: () => `http://127.0.0.1:${port.number}`,
    keys: { signing: { kid: 'test', key }, byKid: new Map([['test', key]]) },
    clock: systemClock,
    logger: silentLogger,
    // Small pages: everything that lists must turn them.
    pageSize: 2,
    minFreeBytes: 0,
  });
  const server = createFolderStoreServer({ store, logger: silentLogger });
  await server.start(new AbortController().signal);
  port.number = server.port;
  return {
    store,
    close: async () => {
      await server.stop();
      await store.close();
      await rm(root, { recursive: true });
    },
  };
}

/** A running API over a real object store; a folder unless told. */
export async function createUploadBench(open: () => Promise<BenchStore> = openFolder): Promise<UploadBench> {
  const opened = await open();
  const { store } = opened;
  const close = (): Promise<void> => opened.close();
  const hooks: StoreHooks = {};
  const objects = withHooks(store, hooks);
  const api = await createTestApi({ objects }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    api,
    objects,
    hooks,
    storeUploads: async () =>
      (await everything((after) => store.listUploads(after))).map((each) => each.uploadId),
    storedObjects: () => everything((after) => store.list('', after)),
    close: async () => {
      await api.close().finally(close);
    },
  };
}

const withHooks = (store: ObjectStore, hooks: StoreHooks): ObjectStore =>
  Object.assign(Object.create(store) as ObjectStore, {
    createUpload: async (key: string) => {
      const uploadId = await store.createUpload(key);
      await hooks.afterCreate?.();
      return uploadId;
    },
    listParts: async (...args: Parameters<ObjectStore['listParts']>) => {
      await hooks.beforeList?.();
      return store.listParts(...args);
    },
    complete: async (...args: Parameters<ObjectStore['complete']>) => {
      await hooks.beforeComplete?.();
      const joined = await store.complete(...args);
      await hooks.afterComplete?.();
      return joined;
    },
  });

async function everything<T>(
  page: (after: string | undefined) => Promise<{ items: readonly T[]; next: string | null }>,
): Promise<T[]> {
  const all: T[] = [];
  for (let after: string | undefined; ;) {
    const { items, next } = await page(after);
    all.push(...items);
    if (next === null) return all;
    after = next;
  }
}

export const uploadsOf = (tenant: Tenant): string => `/v1/projects/${tenant.projectId}/uploads`;

export const start = (
  { api }: UploadBench,
  tenant: Tenant,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<Answer<Upload>> =>
  api.ask<Upload>(`POST ${uploadsOf(tenant)}`, {
    bearer: tenant.full,
    body: { sizeBytes: 1_000, contentType: 'video/mp4', ...body },
    headers,
  });

export const resume = (
  { api }: UploadBench,
  tenant: Tenant,
  uploadId: string,
): Promise<Answer<ResumedUpload>> =>
  api.ask<ResumedUpload>(`GET ${uploadsOf(tenant)}/${uploadId}`, { bearer: tenant.full });

export interface NamedPart {
  partNumber: number;
  etag: string;
}

export const complete = (
  { api }: UploadBench,
  tenant: Tenant,
  uploadId: string,
  parts: unknown,
): Promise<Answer<Video>> =>
  api.ask<Video>(`POST ${uploadsOf(tenant)}/${uploadId}/complete`, { bearer: tenant.full, body: { parts } });

export const cancel = ({ api }: UploadBench, tenant: Tenant, uploadId: string): Promise<Answer> =>
  api.ask(`DELETE ${uploadsOf(tenant)}/${uploadId}`, { bearer: tenant.full });

/** Sends one part as a client does: a bare PUT; the ETag comes in the header. */
export async function put(
  upload: Pick<Upload, 'parts'>,
  partNumber: number,
  bytes: Buffer,
): Promise<NamedPart> {
  const url = upload.parts.find((part) => part.partNumber === partNumber)?.url;
  if (url === undefined) throw new Error(`the upload has no part ${partNumber}`);
  const response = await fetch(url, { method: 'PUT', body: new Uint8Array(bytes) });
  const etag = response.headers.get('etag');
  if (response.status !== 200 || etag === null) throw new Error(`PUT answered ${response.status}`);
  return { partNumber, etag };
}

/** An upload whose parts are all sent, ready to be completed. */
export async function sent(
  bench: UploadBench,
  tenant: Tenant,
  sizes: readonly number[] = [1_000],
): Promise<{ upload: Upload; parts: NamedPart[] }> {
  // Declared so that there is a URL for each: a part is 16 MiB at the least.
  const { body: upload } = await start(bench, tenant, { sizeBytes: 16 * MiB * sizes.length });
  const parts: NamedPart[] = [];
  for (const [index, size] of sizes.entries()) {
    parts.push(await put(upload, index + 1, Buffer.alloc(size, index + 1)));
  }
  return { upload, parts };
}

/** How many rows an account has in the tables that an upload touches. */
export async function rowsOf({ api }: UploadBench, { accountId }: Tenant): Promise<Record<string, number>> {
  const { rows } = await api.store.query<Record<string, number>>(
    `select (select count(*) from videos where account_id = $1) as videos,
       (select count(*) from uploads where account_id = $1) as uploads,
       (select count(*) from object_prefixes p join videos v on v.id = p.video_id where v.account_id = $1) as prefixes,
       (select count(*) from encode_jobs where account_id = $1) as jobs,
       (select count(*) from events where account_id = $1) as events,
       (select count(*) from idempotency where account_id = $1) as keys`,
    [accountId],
  );
  return rows[0] ?? {};
}

export const nothing = { videos: 0, uploads: 0, prefixes: 0, jobs: 0, events: 0, keys: 0 };

/** Types and reasons of a video's events, oldest first. */
export async function eventsOf({ api }: UploadBench, videoId: string): Promise<string[]> {
  const { rows } = await api.store.query<{ type: string; body: Buffer }>(
    'select type, body from events where video_id = $1 order by created_at, id',
    [videoId],
  );
  return rows.map(({ type, body }) => {
    const { data } = JSON.parse(body.toString('utf8')) as { data: { reason?: string } };
    return data.reason === undefined ? type : `${type} ${data.reason}`;
  });
}
