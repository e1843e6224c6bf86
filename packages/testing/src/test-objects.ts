import { createSecretKey, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ObjectStore, type StoredObject } from '@millrace/objects';
import { createFolderObjectStore } from '@millrace/objects/folder';
import { silentLogger, systemClock } from '@millrace/platform';

export interface TestObjects {
  /** The folder. */
  root: string;
  /** A real folder store. Each call passes `interfere` first. */
  objects: ObjectStore;
  /**
   * Called before every call that names a key; what it throws, the call fails with. Null lets all calls pass.
   */
  interfere:
    ((method: 'get' | 'put' | 'head' | 'list' | 'delete', key: string) => void | Promise<void>) | null;
  /** Every object whose key begins with `prefix`. */
  all(prefix?: string): Promise<StoredObject[]>;
  /** The bytes of one object. */
  read(key: string): Promise<Buffer>;
  /** Closes the store and removes its folder. */
  close(): Promise<void>;
}

/** An object store in a temporary folder, whose calls a test can make fail. */
export async function createTestObjects(): Promise<TestObjects> {
  const root = await mkdtemp(path.join(tmpdir(), 'millrace-test-objects-'));
  const key = createSecretKey(randomBytes(32));
  const store = await createFolderObjectStore({
    root,
    publicUrl: 'http://127.0.0.1:1',
    keys: { signing: { kid: 'test', key }, byKid: new Map([['test', key]]) },
    clock: systemClock,
    logger: silentLogger,
    minFreeBytes: 0,
  });
  const test: TestObjects = {
    root,
    interfere: null,
    objects: Object.assign(Object.create(store) as ObjectStore, {
      get: async (...args: Parameters<ObjectStore['get']>) => {
        await test.interfere?.('get', args[0]);
        return store.get(...args);
      },
      put: async (...args: Parameters<ObjectStore['put']>) => {
        await test.interfere?.('put', args[0]);
        return store.put(...args);
      },
      head: async (name: string) => {
        await test.interfere?.('head', name);
        return store.head(name);
      },
      list: async (...args: Parameters<ObjectStore['list']>) => {
        await test.interfere?.('list', args[0]);
        return store.list(...args);
      },
      deleteMany: async (keys: readonly string[]) => {
        for (const each of keys) await test.interfere?.('delete', each);
        return store.deleteMany(keys);
      },
    }),
    all: async (prefix = '') => {
      const found: StoredObject[] = [];
      for (let after: string | undefined; ;) {
        const page = await store.list(prefix, after);
        found.push(...page.items);
        if (page.next === null) return found;
        after = page.next;
      }
    },
    read: async (name) => {
      const { stream } = await store.get(name);
      return Buffer.concat((await stream.toArray()) as Buffer[]);
    },
    close: async () => {
      await store.close();
      await rm(root, { recursive: true });
    },
  };
  return test;
}
