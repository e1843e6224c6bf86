import { type IncomingHttpHeaders } from 'node:http';

/** The credential of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme's case is free); null without one. */
export function bearerOf(headers: IncomingHttpHeaders): string | null {
  const match = /^bearer(?: +(.*))?$/i.exec(headers.authorization ?? '');
  return match === null ? null : (match[1] ?? '').trim();
}

/**
 * A cookie's value (RFC 6265 §5.4); null without one. Null too when it comes with two values: a neighbouring host has
 * planted one for the domain that they share, and nothing tells which (contract SES-009).
 */
export function cookieOf(headers: IncomingHttpHeaders, name: string): string | null {
  const values = new Set<string>();
  for (const pair of (headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === name) values.add(pair.slice(equals + 1).trim());
  }
  const [value] = values;
  return value === undefined || values.size > 1 ? null : value;
}

/** The session of a signed-in browser. */
export const sessionCookie = 'svc_session';

/** A `Set-Cookie` that scripts cannot read and other sites' requests do not carry. @param scope.maxAge in seconds; 0 takes it back */
export const cookieText = (name: string, value: string, { maxAge }: { maxAge: number }): string =>
  `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; Secure; SameSite=Lax`;
