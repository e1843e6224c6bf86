export { type S3Connection, type S3Limits } from './connection.ts';
export { prepareBucket, type PreparedBucket, type RuleOutcome } from './bucket.ts';
export { createS3ObjectStore, type S3ObjectStoreOptions } from './s3-object-store.ts';
export { openObjects, prepareObjects } from './open.ts';
