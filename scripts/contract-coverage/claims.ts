import ts from 'typescript';

/** A test that says, by a tag in its title, which statements it proves: `it('refuses a gap [UPL-232]', …)`. */
export interface Claim {
  ids: string[];
  /** Path of the file that holds the title, from the root of the repository. */
  file: string;
  /** Without its tag; what is not literal is shown as `…`. */
  title: string;
}

/** What keeps one test from claiming everything. */
const MOST_PER_TEST = 3;

const tag = /\s*\[([A-Z]{3}-\d{3}(?:, [A-Z]{3}-\d{3})*)\]/g;
const almostTag = /\[\s*[A-Za-z]{3}-\d[^\]]*\]/;

/** The statements that a title is tagged with. */
export const tagsOf = (title: string): string[] =>
  [...title.matchAll(tag)].flatMap(([, ids]) => (ids ?? '').split(', '));

/**
 * The claims in the text of one file.
 * @throws for a tag that is misspelt, stands on a `describe`, or claims too many statements
 */
export function readClaims(file: string, text: string): Claim[] {
  // Parsing every file of the repository would take seconds; few of them have anything like a tag.
  if (!/\[\s*[A-Za-z]{3}-\d/.test(text)) return [];
  const claims: Claim[] = [];
  const visit = (node: ts.Node): void => {
    const called = ts.isCallExpression(node) ? calledTest(node) : null;
    if (called !== null) {
      const claim = claimOf(file, called.title);
      if (claim !== null && called.name === 'describe') fail(file, called.title, 'tags belong on a test');
      if (claim !== null) claims.push(claim);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS));
  return claims;
}

function claimOf(file: string, title: string): Claim | null {
  const bare = title.replace(tag, '');
  const ids = tagsOf(title);
  if (almostTag.test(bare)) fail(file, title, 'a tag is written [ABC-123] or [ABC-123, ABC-124]');
  if (ids.length > MOST_PER_TEST) fail(file, title, `a test claims at most ${MOST_PER_TEST} statements`);
  return ids.length === 0 ? null : { ids, file, title: bare };
}

function fail(file: string, title: string, reason: string): never {
  throw new Error(`${file}: “${title}”: ${reason}`);
}

const names = new Set(['it', 'test', 'describe']);

/** Of `it('…')`, `it.each(…)('…')` and their like: who is called, and with which title. */
function calledTest(call: ts.CallExpression): { name: string; title: string } | null {
  const [first] = call.arguments;
  const title = first === undefined ? null : literal(first);
  let callee: ts.Node = call.expression;
  for (;;) {
    if (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) callee = callee.expression;
    else if (ts.isTaggedTemplateExpression(callee)) callee = callee.tag;
    else break;
  }
  return title !== null && ts.isIdentifier(callee) && names.has(callee.text)
    ? { name: callee.text, title }
    : null;
}

function literal(node: ts.Expression): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return null;
  return node.head.text + node.templateSpans.map((span) => `…${span.literal.text}`).join('');
}
