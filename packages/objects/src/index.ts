export * from './object-store.ts';
export {
  createFolderObjectStore,
  type FolderObjectStore,
  type FolderObjectStoreOptions,
} from './folder/folder-object-store.ts';
export {
  createFolderStoreServer,
  type FolderStoreServer,
  type FolderStoreServerOptions,
} from './folder/folder-store-server.ts';
export { type PartUrlKeys } from './folder/part-urls.ts';
