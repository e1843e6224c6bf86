import { z } from 'zod';
import { type KeySet } from './keys.ts';
import { signText, verifyText } from './signed-text.ts';

/**
 * What a playback token says (contract "Playback token"): one video, one domain, until an instant.
 * `preview` and `demo` tokens play the same way but are not counted as watched time.
 */
export interface PlaybackClaims {
  kind: 'playback' | 'preview' | 'demo';
  videoId: string;
  /** The one host whose pages may play: lower-case punycode, no port. */
  domain: string;
  /** From this instant on the token is expired. */
  expiresAt: Date;
}

const purpose = 'millrace.playback.v1';

/** The payload on the wire; `exp` is in milliseconds since 1970, as the contract's times have milliseconds. */
const payload = z.object({
  kind: z.enum(['playback', 'preview', 'demo']),
  vid: z.string(),
  dom: z.string(),
  exp: z.int().nonnegative().max(8.64e15),
});

/** Makes an opaque playback token, signed with the set's first key. */
export function signPlaybackToken(claims: PlaybackClaims, keySet: KeySet): string {
  const { kind, videoId, domain, expiresAt } = claims;
  return signText(purpose, { kind, vid: videoId, dom: domain, exp: expiresAt.getTime() }, keySet);
}

/**
 * The claims of a genuine token, or null for anything else: wrong format, key, signature, or another spelling
 * of a genuine one. Says nothing of expiry (see `isExpired`): the contract checks that later and apart.
 */
export function verifyPlaybackToken(token: string, keySet: KeySet): PlaybackClaims | null {
  const parsed = payload.safeParse(verifyText(purpose, token, keySet));
  if (!parsed.success) return null;
  const { kind, vid, dom, exp } = parsed.data;
  return { kind, videoId: vid, domain: dom, expiresAt: new Date(exp) };
}

/** True at and after `expiresAt`; no clock skew is allowed for (contract "Playback protection"). */
export const isExpired = (claims: Pick<PlaybackClaims, 'expiresAt'>, now: Date): boolean =>
  now.getTime() >= claims.expiresAt.getTime();
