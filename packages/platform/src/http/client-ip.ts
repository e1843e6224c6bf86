import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The client's address: the connection's own, or the one that the outermost of `trustedProxies` proxies saw.
 * What stands further left in `X-Forwarded-For` was written by the client and says nothing.
 */
export function clientIp(remoteAddress: string, forwardedFor: string | null, trustedProxies: number): string {
  if (trustedProxies === 0 || forwardedFor === null) return remoteAddress;
  const hops = forwardedFor.split(',').map((hop) => hop.trim());
  return hops[Math.max(0, hops.length - trustedProxies)] || remoteAddress;
}

/** Groups of 16 bits that name a subscriber's network: hosts choose the rest of an IPv6 address freely. */
const networkGroups = 4;

/**
 * Who counts as one client (contract RAT-006): an IPv4 address, the /64 of an IPv6 one. An address that cannot
 * be read stands for itself.
 */
export function clientNetwork(address: string): string {
  if (isIPv4(address) || isIP(address) === 0) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const network = parsed.parts.slice(0, networkGroups).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}
