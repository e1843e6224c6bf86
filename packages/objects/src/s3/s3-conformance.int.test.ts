import { describeWith } from '../../../../dev/real-part.ts';
import { createBucket } from '../../../../dev/s3/bucket.ts';
import { startS3Server } from '../../../../dev/s3/server.ts';
import { missingForS3 } from '../../../../dev/s3/versitygw.ts';
import { objectStoreConformance } from '../conformance/index.ts';
import { createS3ObjectStore } from './s3-object-store.ts';

const pageSize = 3;

describeWith(missingForS3(), 'the S3 adapter', () => {
  objectStoreConformance('a bucket of versitygw', async () => {
    const server = await startS3Server();
    const store = createS3ObjectStore({
      ...(await createBucket(server)),
      ...{ pageSize, putPartBytes: 5 * 1024 ** 2 },
    });
    return {
      store,
      pageSize,
      close: async () => {
        await store.close();
        await server.stop();
      },
    };
  });
});
