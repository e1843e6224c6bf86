import { HeadBucketCommand } from '@aws-sdk/client-s3';
import { type Clock } from '@millrace/platform';
import { type ObjectStore } from '../object-store.ts';
import { createClient, limitsOf, type S3Connection } from './connection.ts';
import { type S3Context } from './context.ts';
import { call } from './errors.ts';
import { deleteObjects, getObject, headObject, listObjects } from './objects.ts';
import { createPartSigner } from './part-signer.ts';
import { putObject } from './put.ts';
import { abortUpload, completeUpload, createUpload, listParts, listUploads } from './uploads.ts';

export interface S3ObjectStoreOptions extends S3Connection {
  clock: Clock;
  /** Where clients reach the bucket's server, when that is not `endpoint`: part URLs are signed for it. */
  publicEndpoint?: string;
  /** Whether `check` is content with reading; false unless told. */
  readOnly?: boolean;
  /** Entries of a page of any list, 1,000 at most and unless told. */
  pageSize?: number;
  /** Of the parts of a stream that is put, in bytes: held in memory, 5 MiB at least; 16 MiB unless told. */
  putPartBytes?: number;
}

/** Not under any prefix that is swept. */
const probeKey = '.millrace-probe';

/**
 * Opens a bucket as an object store. The bucket must be Millrace's alone: unfinished uploads that it does not know
 * are aborted. Nothing is asked of the server yet: `check` does. Part URLs end with the credentials that sign them,
 * so temporary ones cut them short.
 */
export function createS3ObjectStore(options: S3ObjectStoreOptions): ObjectStore {
  const { bucket, clock, publicEndpoint, readOnly = false } = options;
  const client = createClient(options);
  const signingClient =
    publicEndpoint === undefined ? client : createClient({ ...options, endpoint: publicEndpoint });
  const context: S3Context = {
    ...{ client, bucket },
    pageSize: options.pageSize ?? 1_000,
    putPartBytes: options.putPartBytes ?? 16 * 1024 ** 2,
    limits: limitsOf(options),
  };
  return {
    createUpload: (key) => createUpload(context, key),
    presignPart: createPartSigner(signingClient, { bucket, clock }),
    listParts: (input) => listParts(context, input),
    complete: (input) => completeUpload(context, input),
    abort: (input) => abortUpload(context, input),
    listUploads: (after) => listUploads(context, after),
    get: (key, getOptions) => getObject(context, key, getOptions),
    head: (key) => headObject(context, key),
    put: (key, body, putOptions) => putObject(context, key, body, putOptions),
    deleteMany: (keys) => deleteObjects(context, keys),
    list: (prefix, after) => listObjects(context, prefix, after),
    check: async () => {
      if (readOnly) await call(() => client.send(new HeadBucketCommand({ Bucket: bucket })));
      else await putObject(context, probeKey, Buffer.from('probe'));
    },
    close: async () => {
      signingClient.destroy();
      client.destroy();
      return Promise.resolve();
    },
  };
}
