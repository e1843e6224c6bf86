/**
 * The viewer's address: the connection's own, or the one that the outermost of `trustedProxies` proxies saw.
 * What stands further left in `X-Forwarded-For` was written by the client and says nothing.
 */
export function clientIp(remoteAddress: string, forwardedFor: string | null, trustedProxies: number): string {
  if (trustedProxies === 0 || forwardedFor === null) return remoteAddress;
  const hops = forwardedFor.split(',').map((hop) => hop.trim());
  return hops[Math.max(0, hops.length - trustedProxies)] || remoteAddress;
}
