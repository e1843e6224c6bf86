import { createS3ObjectStore } from '@millrace/objects/s3';
import { createBucket } from '../../../../dev/s3/bucket.ts';
import { startS3Server } from '../../../../dev/s3/server.ts';
import { type BenchStore } from './upload-bench.ts';

/** A bucket on a server of its own. */
export async function openS3Store(options: { pageSize: number }): Promise<BenchStore> {
  const server = await startS3Server();
  const store = createS3ObjectStore({ ...(await createBucket(server)), ...options });
  return {
    store,
    close: async () => {
      await store.close();
      await server.stop();
    },
  };
}
