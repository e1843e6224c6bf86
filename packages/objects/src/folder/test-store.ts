import { createSecretKey, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLogger, systemClock } from '@millrace/platform';
import {
  createFolderObjectStore,
  type FolderObjectStore,
  type FolderObjectStoreOptions,
} from './folder-object-store.ts';
import {
  createFolderStoreServer,
  type FolderStoreServer,
  type FolderStoreServerOptions,
} from './folder-store-server.ts';
import { type PartUrlKeys } from './part-urls.ts';

export interface TestStore {
  /** The folder above the store's, for canaries. */
  base: string;
  root: string;
  store: FolderObjectStore;
  server: FolderStoreServer;
  /** Stops all and opens the same folder again, as the next start of a process does. */
  reopen(): Promise<FolderObjectStore>;
  close(): Promise<void>;
}

export const testKey = (kid = 'test'): PartUrlKeys => {
  const key = createSecretKey(randomBytes(32));
  return { signing: { kid, key }, byKid: new Map([[kid, key]]) };
};

/** A folder store in a temporary folder, with its server on a free port. */
export async function createTestStore(
  options: Partial<FolderObjectStoreOptions & FolderStoreServerOptions> = {},
): Promise<TestStore> {
  const base = await mkdtemp(path.join(tmpdir(), 'millrace-objects-'));
  const root = path.join(base, 'store');
  const keys = testKey();
  const open = (): Promise<FolderObjectStore> =>
    createFolderObjectStore({
      root,
      publicUrl: () => `http://127.0.0.1:${server.port}`,
      keys,
      clock: systemClock,
      logger: silentLogger,
      ...options,
    });
  let store = await open();
  const serve = async (): Promise<FolderStoreServer> => {
    const started = createFolderStoreServer({ logger: silentLogger, ...options, store });
    await started.start(AbortSignal.timeout(5_000));
    return started;
  };
  let server = await serve().catch(async (error: unknown) => {
    await store.close();
    await rm(base, { recursive: true });
    throw error;
  });
  const close = async (): Promise<void> => {
    await server.stop();
    await store.close();
  };
  return {
    base,
    root,
    get store() {
      return store;
    },
    get server() {
      return server;
    },
    reopen: async () => {
      await close();
      store = await open();
      server = await serve();
      return store;
    },
    close: async () => {
      await close();
      await rm(base, { recursive: true, force: true });
    },
  };
}
