import { type IncomingHttpHeaders } from 'node:http';

/** The credential of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme's case is free); null without one. */
export function bearerOf(headers: IncomingHttpHeaders): string | null {
  const match = /^bearer(?: +(.*))?$/i.exec(headers.authorization ?? '');
  return match === null ? null : (match[1] ?? '').trim();
}

/** A cookie's value (RFC 6265 §5.4); the first of that name, null without one. */
export function cookieOf(headers: IncomingHttpHeaders, name: string): string | null {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return null;
}

/** The session of a signed-in browser. */
export const sessionCookie = 'svc_session';

/** A `Set-Cookie` that scripts cannot read and other sites' requests do not carry. @param scope.maxAge in seconds; 0 takes it back */
export const cookieText = (
  name: string,
  value: string,
  { maxAge, path = '/' }: { maxAge: number; path?: string },
): string => `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; Secure; SameSite=Lax`;
