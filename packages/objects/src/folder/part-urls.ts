import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type Clock } from '@millrace/platform';
import { isKey } from '../keys.ts';

/** Named HMAC keys: one signs, all verify, so that a secret can be replaced while URLs are out. */
export interface PartUrlKeys {
  readonly signing: { readonly kid: string; readonly key: KeyObject };
  readonly byKid: ReadonlyMap<string, KeyObject>;
}

export interface PartTarget {
  key: string;
  uploadId: string;
  partNumber: number;
  /** The only size of a body that is taken; any unless told. */
  sizeBytes?: number;
}

export type PartUrlRefusal = 'malformed' | 'bad_signature' | 'expired';

/** Makes and reads the URLs that take one part of an upload. */
export interface PartUrls {
  sign(target: PartTarget & { expiresAt: Date }): string;
  /**
   * What a request's URL (its path and query, as received) allows a `PUT` of, or why it is refused. A URL has one
   * spelling: any other order, case, encoding or addition is refused.
   */
  verify(requestUrl: string): PartTarget | { refused: PartUrlRefusal };
}

export interface PartUrlOptions {
  /** Where clients reach the store's server, without a final slash: `https://uploads.example.com`. */
  publicUrl: () => string;
  keys: PartUrlKeys;
  clock: Clock;
}

const shape =
  /^\/upload\/([A-Za-z0-9._/-]+)\?partNumber=([1-9]\d{0,4})&uploadId=([0-9a-f]{32})(?:&size=(0|[1-9]\d{0,14}))?&expires=([1-9]\d{0,14})&kid=([A-Za-z0-9_-]{1,32})&signature=([A-Za-z0-9_-]{43})$/;
const maxUrlLength = 2048;

export function createPartUrls({ publicUrl, keys, clock }: PartUrlOptions): PartUrls {
  const base = (): URL => new URL(publicUrl());
  return {
    sign: ({ expiresAt, ...target }) => {
      const { kid, key } = keys.signing;
      const expires = expiresAt.getTime();
      const { origin, pathname } = base();
      const size = target.sizeBytes === undefined ? '' : `&size=${target.sizeBytes}`;
      const query = `partNumber=${target.partNumber}&uploadId=${target.uploadId}${size}&expires=${expires}&kid=${kid}`;
      return `${origin}${prefix(pathname)}/upload/${target.key}?${query}&signature=${signature(key, target, expires)}`;
    },
    verify: (requestUrl) => {
      const before = prefix(base().pathname);
      if (requestUrl.length > maxUrlLength || !requestUrl.startsWith(before)) return { refused: 'malformed' };
      const match = shape.exec(requestUrl.slice(before.length));
      if (!match) return { refused: 'malformed' };
      const [, key = '', partNumber, uploadId = '', size, expires, kid = '', given = ''] = match;
      if (!isKey(key)) return { refused: 'malformed' };
      const target = {
        ...{ key, uploadId, partNumber: Number(partNumber) },
        ...(size === undefined ? {} : { sizeBytes: Number(size) }),
      };
      const signingKey = keys.byKid.get(kid);
      const expected = signingKey && signature(signingKey, target, Number(expires));
      // As text: of the base64 spellings of one signature only ours passes.
      if (!expected || !timingSafeEqual(Buffer.from(given), Buffer.from(expected))) {
        return { refused: 'bad_signature' };
      }
      return clock.now().getTime() < Number(expires) ? target : { refused: 'expired' };
    },
  };
}

const prefix = (pathname: string): string => pathname.replace(/\/$/, '');

/** What the signature binds; none of the fields can hold a line break. */
function signature(
  key: KeyObject,
  { key: object, uploadId, partNumber, sizeBytes }: PartTarget,
  expires: number,
): string {
  const text = ['millrace part url', 'PUT', object, uploadId, partNumber, sizeBytes ?? 'any', expires].join(
    '\n',
  );
  return createHmac('sha256', key).update(text).digest('base64url');
}
