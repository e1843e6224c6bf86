import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The only range given out for global unicast (RFC 4291 §2.4); everything beside it is refused unseen. */
const global6 = ipaddr.IPv6.parseCIDR('2000::/3');
/** Azure's metadata and agent endpoint: a public address that leads to the machine's own host. */
const hostLocal4 = '168.63.129.16';

/**
 * True for an address of the public internet in its plain spelling (dotted decimal, or RFC 4291 without a zone):
 * global unicast, in no range of IANA's special-purpose registries (RFC 6890 and its updates). IPv6 forms that
 * carry an IPv4 address (mapped, 6to4, NAT64) are not: they lead wherever that address leads.
 */
export function isPublicAddress(address: string): boolean {
  // Asked first, since ipaddr.js also reads octal, hexadecimal and short spellings.
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  if (parsed instanceof ipaddr.IPv4) return address !== hostLocal4;
  return parsed.match(global6);
}

/** True for an address of this machine itself, in its plain spelling. */
export function isLoopbackAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.parse(address).range() === 'loopback';
}
