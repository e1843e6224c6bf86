export {
  createFolderObjectStore,
  type FolderObjectStore,
  type FolderObjectStoreOptions,
} from './folder-object-store.ts';
export {
  createFolderStoreServer,
  type FolderStoreServer,
  type FolderStoreServerOptions,
} from './folder-store-server.ts';
export { type PartUrlKeys } from './part-urls.ts';
