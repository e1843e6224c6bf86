/** The request headers that the CDN looks at; null where absent. */
export interface RequestHead {
  origin: string | null;
  referer: string | null;
  range: string | null;
  ifRange: string | null;
  ifNoneMatch: string | null;
  forwardedFor: string | null;
}

/**
 * Reads them in one pass over the raw headers, which is cheaper than the object that Node would build of all.
 * A repeated header's values are joined, as RFC 9110 §5.3 has it: two origins then equal none. An empty one
 * counts as absent.
 */
export function readHead(rawHeaders: readonly string[]): RequestHead {
  const head: RequestHead = {
    origin: null,
    referer: null,
    range: null,
    ifRange: null,
    ifNoneMatch: null,
    forwardedFor: null,
  };
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const field = fieldOf(rawHeaders[i] ?? '');
    const value = rawHeaders[i + 1] ?? '';
    if (field === null || value === '') continue;
    const known = head[field];
    head[field] = known === null ? value : `${known}, ${value}`;
  }
  return head;
}

const fields = new Map<string, keyof RequestHead>([
  ['origin', 'origin'],
  ['referer', 'referer'],
  ['range', 'range'],
  ['if-range', 'ifRange'],
  ['if-none-match', 'ifNoneMatch'],
  ['x-forwarded-for', 'forwardedFor'],
]);
const lengths = new Set(Array.from(fields.keys(), (name) => name.length));

const fieldOf = (name: string): keyof RequestHead | null =>
  lengths.has(name.length) ? (fields.get(name.toLowerCase()) ?? null) : null;
