import { randomBytes } from 'node:crypto';
import { prepareBucket, type S3ObjectStoreOptions } from '@millrace/objects/s3';
import { silentLogger, systemClock } from '@millrace/platform';
import { type S3Server } from './server.ts';

/** Makes a bucket as an operator does, and tells how to open it. */
export async function createBucket(server: S3Server): Promise<S3ObjectStoreOptions> {
  const { endpoint, region, credentials } = server;
  const bucket = `millrace-${randomBytes(6).toString('hex')}`;
  const connection = { endpoint, region, credentials, bucket, pathStyle: true, logger: silentLogger };
  await prepareBucket(connection);
  return { ...connection, clock: systemClock };
}
