import { type Language, type MessageKey } from './texts.ts';

/** What the embed page tells its script, as JSON in `data-settings` of the player's element. */
export interface PageSettings {
  videoId: string;
  language: Language;
  /** The only origin that is spoken with, `https://{domain}` of the token. */
  embedder: string;
  token: string;
  /** Expiry of the token and the time of the answer, by the CDN's clock, in milliseconds since 1970. */
  expiresAtMs: number;
  nowMs: number;
  /** `#RRGGBB`, or null for the service's own. */
  accent: string | null;
  /** What the page shows in words instead of playing; null: it plays. */
  refused: MessageKey | null;
}
