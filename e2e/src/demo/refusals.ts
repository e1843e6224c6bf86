import { problem } from '@millrace/contract';
import { expectEqual } from './report.ts';

/** A request that must be refused: where, with which headers, and how. */
export interface Refusal {
  url: string;
  headers?: Record<string, string>;
  status: number;
  code: string;
}

/** @throws Error unless status, problem code and `X-Svc-Error` are as promised */
export async function expectRefusal({ url, headers = {}, status, code }: Refusal): Promise<void> {
  const response = await fetch(url, { headers });
  const body = await response.text();
  expectEqual('the status', response.status, status);
  expectEqual('X-Svc-Error', response.headers.get('x-svc-error'), code);
  expectEqual(
    'the content type',
    response.headers.get('content-type')?.split(';')[0],
    'application/problem+json',
  );
  expectEqual('the code', problem.parse(JSON.parse(body)).code, code);
}

/** The same address with another token, or with none. */
export function withToken(url: string, token: string | null): string {
  const changed = new URL(url);
  if (token === null) changed.searchParams.delete('token');
  else changed.searchParams.set('token', token);
  return changed.href;
}

/** The token with one character of its signature changed. */
export function forged(token: string): string {
  const at = token.lastIndexOf('.') + 10;
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The token in another spelling of the same bytes: a lenient decoder drops the last character's low bits. */
export function respelled(token: string): string {
  const last = base64url.indexOf(token.at(-1) ?? '');
  const other = token.slice(0, -1) + (base64url[last ^ 1] ?? '');
  const bytes = (text: string): Buffer => Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
  if (!bytes(other).equals(bytes(token))) throw new Error('the token cannot be spelled in another way');
  return other;
}

/** Asks again until the request is refused as promised. @returns how long that took, in seconds */
export async function refusedWithin(seconds: number, refusal: Refusal): Promise<number> {
  return holdsWithin(seconds, () => expectRefusal(refusal));
}

/** Tries again until it succeeds. @returns how long that took, in seconds */
export async function holdsWithin(seconds: number, attempt: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    try {
      await attempt();
      return (performance.now() - startedAt) / 1000;
    } catch (error) {
      if (performance.now() - startedAt > seconds * 1000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
