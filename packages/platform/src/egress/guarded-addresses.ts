import { Resolver } from 'node:dns/promises';
import { isLoopbackAddress, isPublicAddress } from '../dns/public-address.ts';
import { EgressError } from './egress.ts';
import { type Target } from './target.ts';

export interface AddressRules {
  /** `host:port` of the DNS servers to ask; the machine's own unless told. */
  servers?: readonly string[] | undefined;
  /** Lets loopback addresses through as well, and plain http to them: for development. */
  loopback?: boolean;
  /** Which addresses may be connected to; public ones unless told. */
  allows?: (address: string) => boolean;
}

/** One try of one server, and how many: the exchange's own deadline is over all of it. */
const tryMs = 2_000;
const tries = 3;
/** How long the other family is waited for when one has addresses: some name servers never answer for AAAA. */
const otherFamilyMs = 1_000;

/**
 * Every address that the target's host has, asked for now and once, all of them checked: IPv4 before IPv6. One
 * address that is not public refuses them all, since a name that leads inside is not a host on the internet.
 * Asked of the DNS itself (c-ares), not of `getaddrinfo`: that one holds a thread of a pool of four for as long
 * as a slow name server likes, and knows names that mean something only here (hosts file, search domains).
 * @throws EgressError `address_refused`, `lookup_failed`; the signal's reason when it aborts
 */
export async function guardedAddresses(
  target: Target,
  rules: AddressRules,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = await addressesOf(target, rules.servers ?? [], signal);
  for (const address of addresses) {
    if (!isAllowed(address, target, rules)) {
      throw new EgressError('address_refused', 'the host has an address that is not public');
    }
  }
  return addresses;
}

function isAllowed(address: string, target: Target, rules: AddressRules): boolean {
  if (rules.loopback === true && isLoopbackAddress(address)) return true;
  return target.secure && (rules.allows ?? isPublicAddress)(address);
}

async function addressesOf(
  target: Target,
  servers: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  if (target.family !== 0) return [target.host];
  // RFC 6761 §6.3: these mean this machine and are not to be asked for.
  if (/(^|\.)localhost$/.test(target.host)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: tryMs, tries });
  if (servers.length > 0) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  let patience: NodeJS.Timeout | undefined;
  try {
    const queries = [resolver.resolve4(target.host), resolver.resolve6(target.host)];
    Promise.any(queries).then(
      () => (patience = setTimeout(cancel, otherFamilyMs).unref()),
      () => undefined,
    );
    const answers = await Promise.allSettled(queries);
    signal.throwIfAborted();
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    throw new EgressError('lookup_failed', 'the host name could not be resolved', {
      cause: answers.find((answer) => answer.status === 'rejected')?.reason,
    });
  } finally {
    clearTimeout(patience);
    signal.removeEventListener('abort', cancel);
  }
}
