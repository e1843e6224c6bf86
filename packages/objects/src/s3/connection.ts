import { type LookupFunction } from 'node:net';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { type Logger } from '@millrace/platform';

/** Where a bucket is and how to speak to its server. */
export interface S3Connection {
  bucket: string;
  region: string;
  /** `https://s3.example.com`; unset: Amazon's own for the region. */
  endpoint?: string;
  /** `{endpoint}/{bucket}/{key}` instead of `{bucket}.{endpoint}/{key}`; false unless told. */
  pathStyle?: boolean;
  /** Unset: the SDK's chain (environment, shared files, web identity, container and instance roles). */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
  logger: Logger;
  /** How host names become addresses; as the system does it unless told. */
  lookup?: LookupFunction;
  /** Bounds of everything that waits; see `defaultLimits`. */
  limits?: Partial<S3Limits>;
}

export interface S3Limits {
  /** Until a connection is made, in milliseconds; waiting for a free one of `connections` counts. */
  connectMs: number;
  /** From the request's first byte to the answer's head, in milliseconds, for each try. */
  answerMs: number;
  /** How long a body may go without a byte read, in milliseconds: also for readers that stop reading. */
  idleMs: number;
  /** Until parts are joined, in milliseconds, all tries together; some servers copy them meanwhile. */
  joinMs: number;
  /** Of one request, the first included. */
  tries: number;
  /** At the same time. */
  connections: number;
}

const defaultLimits: S3Limits = {
  connectMs: 5_000,
  answerMs: 60_000,
  idleMs: 60_000,
  joinMs: 600_000,
  tries: 3,
  connections: 128,
};

export const limitsOf = ({ limits }: S3Connection): S3Limits => ({ ...defaultLimits, ...limits });

/** A client of the SDK with every wait bounded; close it by `destroy`. */
export function createClient(connection: S3Connection): S3Client {
  const { region, endpoint, pathStyle = false, credentials, logger } = connection;
  const { connectMs, answerMs, tries, connections } = limitsOf(connection);
  const agent = {
    maxSockets: connections,
    ...(connection.lookup === undefined ? {} : { lookup: connection.lookup }),
  };
  return new S3Client({
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    forcePathStyle: pathStyle,
    // The newer defaults add trailers and checksum parameters that other servers, and a bare PUT, do not know.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // It would open a connection of its own for each large body.
    expectContinueHeader: false,
    retryMode: 'standard',
    maxAttempts: tries,
    logger: sdkLogger(logger),
    requestHandler: {
      connectionTimeout: connectMs,
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      // Bodies have an idle timeout of their own; this one would also end a long join.
      socketTimeout: 0,
      httpAgent: agent,
      httpsAgent: agent,
      logger: sdkLogger(logger),
    },
  });
}

/** What the SDK warns of; the rest it tells by its errors, and its records of requests hold signatures. */
function sdkLogger(logger: Logger): NonNullable<S3ClientConfig['logger']> {
  const ignore = (): void => undefined;
  const warn = (...content: unknown[]): void => {
    logger.warn({ sdk: content.map(String).join(' ') }, 'object store client warns');
  };
  return { trace: ignore, debug: ignore, info: ignore, warn, error: ignore };
}
