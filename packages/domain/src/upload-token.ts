import { z } from 'zod';
import { type KeySet } from './keys.ts';
import { signText, verifyText } from './signed-text.ts';

/** What an upload token lets a browser upload (contract "Upload tokens"). */
export interface UploadClaims {
  /** Names the token: of all uploads one at most was made with it. */
  tokenId: string;
  accountId: string;
  projectId: string;
  /** The host whose pages may use it: lower-case punycode, no port. */
  domain: string;
  maxSizeBytes: number;
  /** The one content type that it may declare; null: any that is supported. */
  contentType: string | null;
  /** Of the video; null: the upload says. */
  title: string | null;
  /** From this instant on it starts nothing. */
  expiresAt: Date;
}

const purpose = 'millrace.upload.v1';

const payload = z.object({
  tid: z.string(),
  acc: z.string(),
  prj: z.string(),
  dom: z.string(),
  max: z.int().positive(),
  type: z.string().nullable(),
  title: z.string().nullable(),
  exp: z.int().nonnegative().max(8.64e15),
});

/** Makes an opaque upload token, signed with the set's first key. It says who may upload: never log it. */
export function signUploadToken(claims: UploadClaims, keySet: KeySet): string {
  const { tokenId, accountId, projectId, domain, maxSizeBytes, contentType, title, expiresAt } = claims;
  const body: z.input<typeof payload> = {
    ...{ tid: tokenId, acc: accountId, prj: projectId, dom: domain },
    ...{ max: maxSizeBytes, type: contentType, title, exp: expiresAt.getTime() },
  };
  return signText(purpose, body, keySet);
}

/** The claims of a genuine token, or null for anything else. Says nothing of expiry (see `isExpired`). */
export function verifyUploadToken(token: string, keySet: KeySet): UploadClaims | null {
  const parsed = payload.safeParse(verifyText(purpose, token, keySet));
  if (!parsed.success) return null;
  const { tid, acc, prj, dom, max, type, title, exp } = parsed.data;
  return {
    ...{ tokenId: tid, accountId: acc, projectId: prj, domain: dom },
    ...{ maxSizeBytes: max, contentType: type, title, expiresAt: new Date(exp) },
  };
}
