import { Client } from 'undici';
import { type EgressAnswer, EgressError, type EgressRequest } from './egress.ts';
import { exchange } from './exchange.ts';
import { connectGuarded, type ConnectRules } from './guarded-connect.ts';
import { type Target } from './target.ts';

export interface ConnectionRules extends ConnectRules {
  /** How long a connection is kept for the next exchange, in milliseconds. */
  idleMs: number;
}

/** The answer's head, and its trailers: more than any honest receiver sends. */
const maxHeadBytes = 16 * 1024;
/** A receiver's `Keep-Alive: timeout` is shortened by this, since it counts from when it sent its answer. */
const keepAliveMarginMs = 500;

/** One connection to a checked address, for one exchange at a time. */
export class GuardedConnection {
  readonly origin: string;
  readonly #client: Client;
  readonly #end = new AbortController();

  constructor(target: Target, rules: ConnectionRules) {
    this.origin = target.origin;
    this.#client = new Client(target.origin, {
      connect: (_options, done) => {
        connectGuarded(target, rules, this.#end.signal).then(
          (socket) => done(null, socket),
          (error: unknown) => done(error as Error, null),
        );
      },
      pipelining: 1,
      maxHeaderSize: maxHeadBytes,
      keepAliveTimeout: rules.idleMs,
      keepAliveMaxTimeout: rules.idleMs,
      keepAliveTimeoutThreshold: keepAliveMarginMs,
      // The exchange's own deadline is over these two.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Calls back when the socket is gone. */
  onceClosed(listener: () => void): void {
    this.#client.once('disconnect', listener);
  }

  /** @throws EgressError, or the reason it was ended with */
  exchange(request: EgressRequest, path: string): Promise<EgressAnswer> {
    return exchange(this.#client, request, path);
  }

  /** Ends whatever is under way, look-up and handshake too; resolves when the socket is closed. */
  async end(reason = new EgressError('aborted', 'the connection was closed')): Promise<void> {
    this.#end.abort(reason);
    await this.#client.destroy(reason);
  }
}
