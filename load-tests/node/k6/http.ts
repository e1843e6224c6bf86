/** Stands in for k6's module `k6/http`, as far as `k6-world.ts` uses it; requests are made by `fetch`. */
import { type Params, type Response } from 'k6/http';

type Answered = Pick<Response, 'status' | 'body' | 'headers'>;

const expectedStatuses = (...statuses: (number | { min: number; max: number })[]): object => ({ statuses });

/** Like k6's, it resolves with status 0 when there is no answer. */
async function asyncRequest(
  method: string,
  url: string,
  body: string | ArrayBuffer | null,
  { headers = {}, responseType, timeout }: Params,
): Promise<Answered> {
  try {
    const signal = AbortSignal.timeout(1_000 * Number.parseInt(String(timeout), 10));
    const response = await fetch(url, { method, headers, body, signal, redirect: 'manual' });
    const text = await response.text();
    return {
      status: response.status,
      body: responseType === 'none' ? null : text,
      headers: Object.fromEntries([...response.headers].map(([name, value]) => [spelt(name), value])),
    };
  } catch {
    return { status: 0, body: null, headers: {} };
  }
}

/** As Go spells names. */
const spelt = (name: string): string => name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());

export default { asyncRequest, expectedStatuses };
