import { ProblemError } from '@millrace/contract';

/**
 * Path and query of a request target, or 400: malformed percent-encoding, bytes that are not UTF-8, NUL.
 * (Bytes that must be encoded never come this far: Node's parser refuses them.)
 */
export function parseTarget(target: string): { path: string; query: Record<string, string | string[]> } {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const search = mark < 0 ? '' : target.slice(mark + 1);
  check(path, 'path');
  check(search, 'query');
  return { path, query: search === '' ? {} : parseQuery(search) };
}

function check(text: string, where: string): void {
  const problem = problemIn(text);
  if (problem !== null) {
    throw new ProblemError('invalid_request', {
      detail: `The ${where} of the address ${problem}.`,
      errors: [{ path: where, message: problem }],
    });
  }
}

function problemIn(text: string): string | null {
  if (!text.includes('%')) return null;
  try {
    return decodeURIComponent(text).includes('\0') ? 'holds NUL' : null;
  } catch {
    return 'has malformed percent-encoding';
  }
}

/** Repeated names become arrays, which no schema takes: a parameter given twice is refused, not guessed at. */
function parseQuery(search: string): Record<string, string | string[]> {
  // Without a prototype: `?__proto__=x` is a name like any other.
  const query = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query[name];
    query[name] = known === undefined ? value : [known, value].flat();
  }
  return query;
}
