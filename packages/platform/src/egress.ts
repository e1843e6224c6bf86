/** One outbound HTTP exchange to an address that a customer chose. */
export interface EgressRequest {
  url: string;
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** For everything: look-up, connect, send and answer; milliseconds. */
  timeoutMs: number;
  /** The answer's body is cut there. */
  maxResponseBytes: number;
  signal?: AbortSignal;
}

/**
 * The only way out to addresses that customers choose: it resolves the name once, refuses every address that is
 * not public, connects to the very address it checked, and follows no redirect.
 */
export interface EgressConnector {
  send(request: EgressRequest): Promise<{ status: number; body: Uint8Array }>;
}
