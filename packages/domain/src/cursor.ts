import { createHash } from 'node:crypto';
import { type KeySet } from './keys.ts';
import { signText, verifyText } from './signed-text.ts';

/** Where a page of a list ends: its last row's sort key, newest first. */
export interface Position {
  /** To the millisecond, as rows are created. */
  createdAt: Date;
  id: string;
}

/** What a cursor is good for. The same names and values are needed to go on. */
export interface CursorScope {
  operationId: string;
  /** The project, or the account for its own lists. */
  owner: string;
  /** Every filter that chooses rows; not the page size. */
  filters?: Readonly<Record<string, string | undefined>>;
}

const purpose = 'cursor';

/** A cursor that goes on after `position`: signed, since a made-up one could look where its maker may not. */
export const encodeCursor = (keySet: KeySet, scope: CursorScope, position: Position): string =>
  signText(purpose, { s: digest(scope), t: position.createdAt.getTime(), i: position.id }, keySet);

/** The position, or null for text that this function's counterpart did not make for this very scope. */
export function decodeCursor(keySet: KeySet, scope: CursorScope, text: string): Position | null {
  const payload = verifyText(purpose, text, keySet) as { s?: unknown; t?: unknown; i?: unknown } | null;
  if (payload === null || payload.s !== digest(scope)) return null;
  const { t, i } = payload;
  return typeof t === 'number' && typeof i === 'string' ? { createdAt: new Date(t), id: i } : null;
}

/** Short, so that long filters do not make long cursors. */
function digest({ operationId, owner, filters = {} }: CursorScope): string {
  const given = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([operationId, owner, given]))
    .digest('base64url')
    .slice(0, 22);
}
