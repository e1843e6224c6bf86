import { type S3Client } from '@aws-sdk/client-s3';
import { type S3Limits } from './connection.ts';

/** What the operations of one store share. */
export interface S3Context {
  client: S3Client;
  bucket: string;
  pageSize: number;
  /** Of the parts of a stream that is put, in bytes. */
  putPartBytes: number;
  limits: S3Limits;
}

/** ETags as the HTTP header has them; some servers leave the quotes out of lists. */
export function quoted(etag: string | undefined): string {
  return `"${(etag ?? '').replace(/^"(.*)"$/, '$1')}"`;
}

/** The SDK's option for a signal that may not be there. */
export const abortedBy = (signal: AbortSignal | undefined): { abortSignal?: AbortSignal } =>
  signal === undefined ? {} : { abortSignal: signal };
