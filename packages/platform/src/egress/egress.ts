import { type IncomingHttpHeaders } from 'node:http';

/** One outbound HTTP exchange with a host that a customer chose. */
export interface EgressRequest {
  url: string;
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** For everything: look-up, connect, TLS, send and the whole answer; milliseconds. */
  timeoutMs: number;
  /** The answer's body is cut there, and its connection closed; bytes. */
  maxResponseBytes: number;
  /**
   * The receiver recognises a repetition, so that the request may be sent a second time when a kept connection
   * turns out to have been closed by the other side (RFC 9110 §9.2.2). Never unless told.
   */
  repeatable?: boolean;
  signal?: AbortSignal;
}

export interface EgressAnswer {
  /** Any final status; a redirect is an answer like any other. */
  status: number;
  headers: IncomingHttpHeaders;
  body: Uint8Array;
  /** The body was longer than `maxResponseBytes`. */
  truncated: boolean;
}

/**
 * The only way out to hosts that customers choose: it resolves the name once, refuses every address that is not
 * public, connects to the very address it checked, and follows no redirect.
 */
export interface EgressConnector {
  /** @throws EgressError when there is no whole answer within the time, or none may be asked for */
  send(request: EgressRequest): Promise<EgressAnswer>;
  /** Ends every connection; what is still under way fails as `aborted`. */
  close(): Promise<void>;
}

export type EgressErrorCode =
  /** Not https, user info, or a port that is not for the web. */
  | 'url_refused'
  /** The host is, or its name leads to, an address that is not public. */
  | 'address_refused'
  | 'lookup_failed'
  | 'connect_failed'
  /** No TLS, or a certificate that does not prove the host's name. */
  | 'tls_failed'
  /** The connection ended before the answer did. */
  | 'connection_lost'
  /** Not HTTP/1.1, or a head that is too long. */
  | 'bad_answer'
  | 'timeout'
  | 'aborted';

/** Why an exchange has no answer. The message is fit for the customer: no address, no secret, no foreign text. */
export class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: EgressErrorCode;
  /** The answer's status, when its head had arrived. */
  readonly status: number | null;

  constructor(
    code: EgressErrorCode,
    message: string,
    options: { cause?: unknown; status?: number | null } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = options.status ?? null;
  }
}
