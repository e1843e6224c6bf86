/** The flow's cookie has to stay below what browsers and `verifyText` take. */
const maximumLength = 900;

/**
 * Where on the dashboard a sign-in leads: an absolute path of it, with query and fragment, percent-encoded. `/` for
 * everything else: other sites' addresses in all their disguises (`//evil`, `/\evil`, a tab that parsers drop).
 */
export function safeReturnTo(returnTo: unknown): string {
  if (typeof returnTo !== 'string' || !/^\/(?![/\\])[^\\\p{Cc}]*$/u.test(returnTo)) return '/';
  const base = 'https://dashboard.invalid';
  const url = URL.parse(returnTo, base);
  if (url?.origin !== base) return '/';
  const path = url.pathname + url.search + url.hash;
  // Dots may resolve to one: `/.//evil`.
  return path.startsWith('//') || path.length > maximumLength ? '/' : path;
}
