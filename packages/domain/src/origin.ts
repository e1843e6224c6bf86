const scheme = 'https://';

/**
 * True when `origin` (an `Origin` header's value) is exactly `https://{domain}` (contract "Playback
 * protection"): https only, no port, not even 443, host compared without case, no subdomain, nothing after
 * the host. `null`, lists and every other form are false.
 */
export function isOriginOf(origin: string, domain: string): boolean {
  // ASCII only: lower-casing maps a few other characters onto ASCII letters (the Kelvin sign onto k).
  if (!/^https:\/\/[!-~]+$/.test(origin)) return false;
  return origin.slice(scheme.length).toLowerCase() === domain.toLowerCase();
}

/**
 * The origin of a `Referer` header as it is written there: scheme and authority, without path, query and
 * fragment. Text without `://` is returned whole: it equals no origin. A userinfo stays in it and so never
 * matches; browsers do not send one.
 */
export function originOfReferer(referer: string): string {
  const authority = referer.indexOf('://') + 3;
  if (authority < 3) return referer;
  const end = referer.slice(authority).search(/[/?#\\]/);
  return end < 0 ? referer : referer.slice(0, authority + end);
}
