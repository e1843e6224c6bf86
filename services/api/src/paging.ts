import { fieldProblem } from '@millrace/contract';
import { type CursorScope, decodeCursor, encodeCursor, type KeySet, type Position } from '@millrace/domain';

/**
 * One page of a list, newest first.
 * @param read reads up to `limit` rows after a position
 * @throws ProblemError `invalid_request` for a cursor that is forged, foreign or for other filters
 */
export async function readPage<Row extends Position, Resource>(
  keySet: KeySet,
  input: {
    scope: CursorScope;
    query: { limit: number; cursor?: string | undefined };
    read: (limit: number, after: Position | null) => Promise<readonly Row[]>;
    toResource: (row: Row) => Resource;
  },
): Promise<{ data: Resource[]; nextCursor: string | null }> {
  const { scope, query, read, toResource } = input;
  const after = query.cursor === undefined ? null : decodeCursor(keySet, scope, query.cursor);
  if (query.cursor !== undefined && after === null) {
    throw fieldProblem('invalid_request', 'cursor', 'is not a cursor of this list');
  }
  // One more than asked for tells whether another page follows.
  const rows = await read(query.limit + 1, after);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const more = rows.length > query.limit && last !== undefined;
  return { data: page.map(toResource), nextCursor: more ? encodeCursor(keySet, scope, last) : null };
}
