export { type S3Connection, type S3Limits } from './connection.ts';
export { createS3ObjectStore, type S3ObjectStoreOptions } from './s3-object-store.ts';
export { openObjects } from './open.ts';
