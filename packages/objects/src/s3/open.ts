import { type Clock, type Logger } from '@millrace/platform';
import { type ObjectStore } from '../object-store.ts';
import { prepareBucket, type PreparedBucket } from './bucket.ts';
import { type S3Connection } from './connection.ts';
import { createS3ObjectStore } from './s3-object-store.ts';
import { type S3Config } from './settings.ts';

/** Where the bucket is and how to speak to its server. */
function s3Connection(config: S3Config, logger: Logger): S3Connection {
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = config;
  return {
    bucket: config.S3_BUCKET,
    region: config.S3_REGION,
    pathStyle: config.S3_PATH_STYLE,
    ...(config.S3_ENDPOINT === undefined ? {} : { endpoint: config.S3_ENDPOINT }),
    ...(accessKeyId === undefined || secretAccessKey === undefined
      ? {}
      : { credentials: { accessKeyId, secretAccessKey } }),
    logger,
  };
}

/** Opens the bucket as the settings say. @param parts.readOnly for a process that may write nothing */
export const openObjects = (
  config: S3Config,
  { clock, logger, readOnly = false }: { clock: Clock; logger: Logger; readOnly?: boolean },
): ObjectStore =>
  createS3ObjectStore({
    ...s3Connection(config, logger),
    ...(config.S3_PUBLIC_ENDPOINT === undefined ? {} : { publicEndpoint: config.S3_PUBLIC_ENDPOINT }),
    ...{ clock, readOnly },
  });

/** Makes the bucket of the settings what Millrace needs: see `prepareBucket`. */
export const prepareObjects = (config: S3Config, { logger }: { logger: Logger }): Promise<PreparedBucket> =>
  prepareBucket(s3Connection(config, logger));
