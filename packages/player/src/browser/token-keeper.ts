import { type FreshToken, type TokenReason } from './embedder.ts';

/** What came of asking the CDN for the master playlist: an error code, or none; `unreachable` without an answer. */
export type Verdict = 'ok' | 'unreachable' | { code: string };

/** True unless nothing is known of a token, or the CDN refuses it for its own sake: a held video says nothing of it. */
export const isUsable = (verdict: Verdict): boolean =>
  verdict === 'ok' || (verdict !== 'unreachable' && !/^token_|^domain_/.test(verdict.code));

export interface TokenKeeperDeps {
  /** Sends the embedder a request for a token; its answer comes through `offer`. */
  ask(reason: TokenReason): void;
  /** Asks the CDN whether it plays with this token. */
  verify(token: string): Promise<Verdict>;
  /** Milliseconds since 1970 by the CDN's clock, as far as known here. */
  now(): number;
  /** A new token is in use from now on. */
  onRenewed(): void;
  /** The token has expired and nobody gave another. */
  onExpired(): void;
}

/** A request is repeated as long as there is no answer. */
export const askAgainMs = 5_000;
/** How long an expired token is waited for before the viewer is told. */
const patienceMs = 8_000;
/** The longest that a browser's timer can wait; tokens live for a day at most. */
const maximumDelayMs = 2 ** 31 - 1;
/** The longest time before expiry at which a new token is asked for; short-lived tokens are renewed later. */
const earliestMs = 60_000;

/**
 * Keeps the token that every request bears, and has it renewed by the embedder before it expires. Whoever is
 * about to make a request asks `usable()`, which waits while an expired token is being renewed.
 */
export class TokenKeeper {
  readonly #deps: TokenKeeperDeps;
  #token: string;
  #expiresAtMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Set while an expired token is being renewed; true when that worked. */
  #renewal: { result: Promise<boolean>; finish(worked: boolean): void } | null = null;
  #offers = 0;

  constructor(token: string, expiresAtMs: number, deps: TokenKeeperDeps) {
    this.#deps = deps;
    this.#token = token;
    this.#expiresAtMs = expiresAtMs;
    this.#schedule(this.#renewAtMs());
  }

  get token(): string {
    return this.#token;
  }

  get renewing(): boolean {
    return this.#renewal !== null;
  }

  /** The token to send; waits while an expired one is renewed, and gives the old one when that failed. */
  async usable(): Promise<string> {
    if (this.#renewal !== null) await this.#renewal.result;
    else if (this.#isExpired()) await this.renew();
    return this.#token;
  }

  /** Takes what the embedder sent, asked for or not. It is tried first: a bad one must not replace a good one. */
  async offer({ token, expiresAtMs }: FreshToken): Promise<void> {
    if (token === this.#token) return;
    const offer = ++this.#offers;
    const verdict = await this.#deps.verify(token);
    if (offer !== this.#offers) return;
    if (!isUsable(verdict)) return;
    this.#token = token;
    // Without a word on it, or with one that cannot be true of a token that was just taken, a refusal will tell.
    this.#expiresAtMs = expiresAtMs !== null && expiresAtMs > this.#deps.now() ? expiresAtMs : Infinity;
    this.#renewal?.finish(true);
    this.#schedule(this.#renewAtMs());
    this.#deps.onRenewed();
  }

  /** The CDN says that the token has expired, whatever was thought here. Resolves to whether there is a new one. */
  renew(): Promise<boolean> {
    if (this.#renewal !== null) return this.#renewal.result;
    this.#expiresAtMs = Math.min(this.#expiresAtMs, this.#deps.now());
    let finish: (worked: boolean) => void = () => undefined;
    const result = new Promise<boolean>((resolve) => {
      finish = (worked) => {
        clearTimeout(over);
        this.#renewal = null;
        resolve(worked);
      };
      const over = setTimeout(() => {
        finish(false);
        clearTimeout(this.#timer);
        this.#deps.onExpired();
      }, patienceMs);
    });
    this.#renewal = { result, finish };
    this.#ask();
    return result;
  }

  #isExpired(): boolean {
    return this.#deps.now() >= this.#expiresAtMs;
  }

  /** A minute before the end, or at four fifths of a short life. */
  #renewAtMs(): number {
    const left = this.#expiresAtMs - this.#deps.now();
    return this.#expiresAtMs - Math.min(earliestMs, left / 5);
  }

  #schedule(atMs: number): void {
    clearTimeout(this.#timer);
    if (atMs === Infinity) return;
    const delay = Math.min(maximumDelayMs, Math.max(0, atMs - this.#deps.now()));
    this.#timer = setTimeout(() => this.#ask(), delay);
  }

  #ask(): void {
    if (this.#isExpired() && this.#renewal === null) {
      void this.renew();
      return;
    }
    this.#deps.ask(this.#renewal === null ? 'expiring' : 'expired');
    const again = this.#deps.now() + askAgainMs;
    this.#schedule(this.#renewal === null ? Math.min(again, this.#expiresAtMs) : again);
  }
}
