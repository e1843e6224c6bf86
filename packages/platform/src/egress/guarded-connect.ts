import { type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { EgressError } from './egress.ts';
import { type AddressRules, guardedAddresses } from './guarded-addresses.ts';
import { type Target } from './target.ts';

export interface ConnectRules extends AddressRules {
  /** Certificate authorities in PEM to trust instead of the well-known ones. */
  ca?: string;
}

/** How long one address of several may take before the next is tried, in milliseconds. */
const addressTryMs = 2_500;

/**
 * Connects to an address that was checked for this very connection: the name is resolved once, here, and the
 * socket is given the checked addresses instead of a resolver. TLS goes on asking for, and proving, the name.
 * @throws EgressError of looking up, connecting and TLS; the signal's reason when it aborts
 */
export async function connectGuarded(
  target: Target,
  rules: ConnectRules,
  signal: AbortSignal,
): Promise<Socket> {
  const addresses = await guardedAddresses(target, rules, signal);
  signal.throwIfAborted();
  const connect = buildConnector({
    lookup: onlyTo(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressTryMs,
    allowH2: false,
    // Said here, so that NODE_TLS_REJECT_UNAUTHORIZED cannot say otherwise.
    rejectUnauthorized: true,
    // The exchange's deadline ends the socket by the signal; a resumed session would skip the certificate.
    timeout: 0,
    maxCachedSessions: 0,
    ...(rules.ca === undefined ? {} : { ca: rules.ca }),
  }) as (options: buildConnector.Options, done: buildConnector.Callback) => Socket;
  const { host, family, port, secure } = target;
  const options = {
    hostname: host,
    protocol: secure ? 'https:' : 'http:',
    port,
    ...(family === 0 ? { servername: host } : {}),
  };
  return new Promise((resolve, reject) => {
    let reached = false;
    const onAbort = (): void => {
      socket.destroy();
      reject(signal.reason as Error);
    };
    const socket = connect(options, (error, connected) => {
      signal.removeEventListener('abort', onAbort);
      if (error === null) resolve(connected);
      else reject(connectError(error, reached && secure));
    });
    socket.once('connect', () => (reached = true));
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** A resolver that knows nothing but these addresses. */
function onlyTo(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_name, _options, done) => done(null, entries);
}

function connectError(error: Error, inHandshake: boolean): EgressError {
  const { code } = error as NodeJS.ErrnoException;
  const detail = code !== undefined && /^[A-Z][A-Z0-9_]*$/.test(code) ? ` (${code})` : '';
  return inHandshake
    ? new EgressError('tls_failed', `no TLS that proves the host's name${detail}`, { cause: error })
    : new EgressError('connect_failed', `could not connect${detail}`, { cause: error });
}
