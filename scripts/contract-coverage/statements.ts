/** One numbered sentence of `docs/contract.md`. */
export interface Statement {
  id: string;
  /** The sentence, on one line; of a table's row its cells. */
  text: string;
  /** Titles of the headings above it, from the second level on. */
  section: string;
}

const id = /[A-Z]{3}-\d{3}/;
const heading = /^(#{2,4}) (.+)$/;
const listItem = new RegExp(`^- \\*\\*(${id.source})\\*\\* (.+)$`);
const tableRow = new RegExp(`^\\| \\*\\*(${id.source})\\*\\* *\\|(.+)\\|$`);
const continued = /^ {2}(\S.*)$/;

/**
 * Every statement of the contract in its order: list items that begin with a bold id, and table rows whose first
 * cell is one.
 * @throws when an id is given twice, or one that does not exist is named
 */
export function readStatements(markdown: string): Statement[] {
  const statements: Statement[] = [];
  // By level; a level that was left out is a hole.
  const headings: string[] = [];
  let open: Statement | null = null;
  for (const line of markdown.split('\n')) {
    const [, marks, title] = heading.exec(line) ?? [];
    if (marks !== undefined && title !== undefined) {
      const level = marks.length - 2;
      headings.length = Math.min(headings.length, level);
      headings[level] = title;
    }
    const item = listItem.exec(line);
    const row = item ?? tableRow.exec(line);
    const more = continued.exec(line)?.[1];
    if (row !== null) {
      open = {
        id: row[1] ?? '',
        text: sentence(row[2] ?? ''),
        section: headings.filter(Boolean).join(' › '),
      };
      statements.push(open);
      if (item === null) open = null;
    } else if (open !== null && more !== undefined) {
      open.text += ` ${more}`;
    } else {
      open = null;
    }
  }
  checkIds(markdown, statements);
  return statements;
}

const sentence = (text: string): string =>
  text
    .split('|')
    .map((cell) => cell.trim())
    .join(' | ');

function checkIds(markdown: string, statements: readonly Statement[]): void {
  const known = new Set<string>();
  for (const statement of statements) {
    if (known.has(statement.id)) throw new Error(`${statement.id} is given to two statements`);
    known.add(statement.id);
  }
  // Other things are spelt like ids (SHA-256): what begins like a statement is meant as one.
  const prefixes = new Set([...known].map(prefixOf));
  for (const [named] of markdown.matchAll(new RegExp(`\\b${id.source}\\b`, 'g'))) {
    if (!known.has(named) && prefixes.has(prefixOf(named)))
      throw new Error(`The contract names ${named}, which is no statement`);
  }
}

const prefixOf = (name: string): string => name.slice(0, 3);
