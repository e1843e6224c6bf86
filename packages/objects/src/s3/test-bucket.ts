import { randomBytes } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { silentLogger, systemClock } from '@millrace/platform';
import { type S3Server } from '../../../../dev/s3/server.ts';
import { type S3ObjectStoreOptions } from './s3-object-store.ts';

/** Makes a bucket of its own and tells how to open it. */
export async function createTestBucket(server: S3Server): Promise<S3ObjectStoreOptions> {
  const { endpoint, region, credentials } = server;
  const bucket = `test-${randomBytes(6).toString('hex')}`;
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
  return {
    ...{ endpoint, region, credentials, bucket, pathStyle: true },
    ...{ clock: systemClock, logger: silentLogger },
  };
}
