import { isTokenText } from './addresses.ts';

/** A token as the embedder hands it over. */
export interface FreshToken {
  token: string;
  /** Milliseconds since 1970; null when the embedder did not say. */
  expiresAtMs: number | null;
}

export type TokenReason = 'expiring' | 'expired';

/** What the embedding page hears (docs/player.md). */
type PlayerEvent =
  { event: 'ready' | 'play' | 'pause' | 'ended' | 'token_renewed' } | { event: 'error'; code: string };

/** The page that frames the player, spoken with by `postMessage` as docs/player.md describes. */
export interface Embedder {
  askForToken(reason: TokenReason): void;
  tell(event: PlayerEvent): void;
}

/** The part of `window` that is used: the frame's own, and its parent. */
export interface FrameWindow {
  readonly parent: unknown;
  addEventListener(type: 'message', listener: (message: MessageEvent) => void): void;
}

const version = 1;

/**
 * Speaks with the embedder and nobody else: messages go to exactly `origin`, and are taken only when they come
 * from the parent frame and that origin.
 * @param origin `https://{domain}` of the token
 */
export function createEmbedder(
  frame: FrameWindow,
  { origin, videoId }: { origin: string; videoId: string },
  onToken: (fresh: FreshToken) => void,
): Embedder {
  const parent = frame.parent as Pick<Window, 'postMessage'>;
  const framed = frame.parent !== frame;
  frame.addEventListener('message', (message) => {
    if (!framed || message.source !== frame.parent || message.origin !== origin) return;
    const fresh = parseToken(message.data, videoId);
    if (fresh !== null) onToken(fresh);
  });
  const send = (message: Record<string, unknown>): void => {
    if (framed) parent.postMessage({ ...message, v: version, videoId }, origin);
  };
  return {
    askForToken: (reason) => send({ type: 'millrace:token-request', reason }),
    tell: (event) => send({ type: 'millrace:event', ...event }),
  };
}

/** Null for what is no answer to a request of this player. */
function parseToken(data: unknown, videoId: string): FreshToken | null {
  if (typeof data !== 'object' || data === null) return null;
  const message = data as Record<string, unknown>;
  if (message['type'] !== 'millrace:token' || message['v'] !== version) return null;
  // A page with several players answers each; one that names no video has only this one.
  if (message['videoId'] !== undefined && message['videoId'] !== videoId) return null;
  const { token, expiresAt } = message;
  if (!isTokenText(token)) return null;
  const at = typeof expiresAt === 'string' ? Date.parse(expiresAt) : NaN;
  return { token, expiresAtMs: Number.isNaN(at) ? null : at };
}
