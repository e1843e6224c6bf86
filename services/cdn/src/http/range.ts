/** Inclusive byte positions within a body. */
export interface BodyRange {
  start: number;
  end: number;
}

/**
 * Reads a `Range` header for a body of `size` bytes (RFC 9110 §14.2). `all` means that the header is to be
 * ignored: another unit, malformed, or several ranges (which a server may answer whole).
 */
export function parseRange(header: string, size: number): BodyRange | 'all' | 'unsatisfiable' {
  const match = /^bytes[ \t]*=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header);
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return 'all';
  if (first === '') {
    const suffix = Number(last);
    return suffix === 0 || size === 0
      ? 'unsatisfiable'
      : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Number(last);
  if (last !== '' && end < start) return 'all';
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(end, size - 1) };
}
