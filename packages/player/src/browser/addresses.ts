/** A token's form: it is opaque, but nothing else could be sent in a query as it stands. */
const tokenForm = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const maximumTokenLength = 4_096;

export const isTokenText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= maximumTokenLength && tokenForm.test(value);

/** The same address with `token` in place of whatever token it has. */
export function withToken(address: string, token: string): string {
  const url = new URL(address);
  url.searchParams.set('token', token);
  return url.href;
}

/** Addresses of a video's files, beside the embed page's own (`…/e/{videoId}`). */
export const fileAddress = (page: string, videoId: string, file: string): string =>
  new URL(`../v/${videoId}/${file}`, page).href;
