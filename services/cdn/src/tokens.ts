import { type KeySet, type PlaybackClaims, verifyPlaybackToken } from '@millrace/domain';
import { GenerationCache } from './generation-cache.ts';

/** A genuine token with what every request that bears it needs. */
export interface VerifiedToken {
  readonly text: string;
  readonly claims: PlaybackClaims;
  readonly expiresAtMs: number;
  /** What the links of its playlists get: `?token=…`. */
  readonly query: string;
}

/** Verifies tokens, remembering the genuine ones by their text. */
export interface Tokens {
  /** Null for anything but a genuine token. Says nothing of expiry. */
  verify(text: string): VerifiedToken | null;
  /** Drops a token that need not be remembered any more, since it has expired. */
  forget(token: VerifiedToken): void;
}

/** Object, map slot and claims beside the text, roughly. */
const overheadBytes = 400;

/** @param maximumBytes bound of the memory; false tokens take none of it, so they cannot push out true ones */
export function createTokens(keySet: KeySet, maximumBytes: number): Tokens {
  const known = new GenerationCache<VerifiedToken>(maximumBytes);
  return {
    verify(text) {
      const cached = known.get(text);
      if (cached !== undefined) return cached;
      const claims = verifyPlaybackToken(text, keySet);
      if (claims === null) return null;
      const token = { text, claims, expiresAtMs: claims.expiresAt.getTime(), query: `?token=${text}` };
      known.set(text, token, overheadBytes + 3 * text.length);
      return token;
    },
    forget: (token) => known.delete(token.text),
  };
}
