import { ObjectStoreError } from '../object-store.ts';
import { type PartUrlRefusal } from './part-urls.ts';
import { DigestMismatchError } from './uploads.ts';

/** What the server refuses with: S3's codes, statuses and sentences, so that S3 clients know what to do. */
const table = {
  AccessDenied: [403, 'Access Denied'],
  AccessForbidden: [403, 'CORSResponse: This CORS request is not allowed.'],
  BadDigest: [400, 'The Content-MD5 you specified did not match what we received.'],
  EntityTooLarge: [400, 'Your proposed upload exceeds the maximum allowed size.'],
  InternalError: [500, 'We encountered an internal error. Please try again.'],
  InvalidDigest: [400, 'The Content-MD5 you specified is not valid.'],
  MethodNotAllowed: [405, 'The specified method is not allowed against this resource.'],
  MissingContentLength: [411, 'You must provide the Content-Length HTTP header.'],
  NoSuchUpload: [404, 'The specified upload does not exist. It may have been aborted or completed.'],
  RequestTimeout: [400, 'Your socket connection to the server was not read from within the timeout period.'],
  RequestExpired: [403, 'Request has expired'],
  ServiceUnavailable: [503, 'Please reduce your request rate or try again later.'],
  SignatureDoesNotMatch: [
    403,
    'The request signature we calculated does not match the signature you provided.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type S3ErrorCode = keyof typeof table;

export class S3Error extends Error {
  override readonly name = 'S3Error';
  readonly code: S3ErrorCode;
  readonly status: number;

  constructor(code: S3ErrorCode, options?: ErrorOptions) {
    super(table[code][1], options);
    this.code = code;
    this.status = table[code][0];
  }

  /** The body of the answer. Nothing in it comes from the request. */
  toXml(requestId: string): string {
    // S3 says of an expired URL only that access is denied; the sentence tells the reason.
    const code = this.code === 'RequestExpired' ? 'AccessDenied' : this.code;
    return (
      '<?xml version="1.0" encoding="UTF-8"?>\n' +
      `<Error><Code>${code}</Code><Message>${this.message}</Message><RequestId>${requestId}</RequestId></Error>`
    );
  }
}

export function refusalOf(refused: PartUrlRefusal): S3Error {
  if (refused === 'expired') return new S3Error('RequestExpired');
  return new S3Error(refused === 'bad_signature' ? 'SignatureDoesNotMatch' : 'AccessDenied');
}

export function toS3Error(error: unknown): S3Error {
  if (error instanceof S3Error) return error;
  if (error instanceof DigestMismatchError) return new S3Error('BadDigest', { cause: error });
  if (error instanceof ObjectStoreError) {
    if (error.code === 'no_such_upload') return new S3Error('NoSuchUpload', { cause: error });
    if (error.code === 'unavailable') return new S3Error('ServiceUnavailable', { cause: error });
  }
  return new S3Error('InternalError', { cause: error });
}
