import { type ErrorCode, errorCodes } from '../errors.ts';
import { isInternal, type RouteDefinition } from '../routes/index.ts';

/** Codes that a route can answer beside those that it names, since they follow from what it is. */
function impliedCodes(route: RouteDefinition): ErrorCode[] {
  const customer = route.auth.includes('key') || route.auth.includes('session');
  const session = route.auth.includes('session');
  return [
    // Malformed percent-encoding and NUL are refused on every address.
    'invalid_request',
    ...(route.auth.length > 0 ? (['unauthorized'] as const) : []),
    ...(customer ? (['account_banned', 'banned'] as const) : []),
    // A playback-only key is told so, also where no key may go.
    ...(customer && route.keyScope !== 'playback' ? (['insufficient_scope'] as const) : []),
    'not_found',
    ...(route.body !== undefined || session ? (['unsupported_media_type'] as const) : []),
    ...(isInternal(route) || route.path === '/health' ? [] : (['rate_limited'] as const)),
    ...['internal_error' as const, 'service_unavailable' as const],
  ];
}

/** Every code that a route can answer, by HTTP status. `invalid_request` has two statuses (contract "Errors"). */
export function codesByStatus(route: RouteDefinition): Map<number, ErrorCode[]> {
  const codes = [...new Set([...impliedCodes(route), ...(route.errors ?? [])])];
  const statuses = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = errorCodes[code];
    statuses.set(status, [...(statuses.get(status) ?? []), code]);
  }
  if (route.idempotent === true) statuses.set(422, ['invalid_request']);
  return new Map([...statuses].sort(([a], [b]) => a - b));
}
