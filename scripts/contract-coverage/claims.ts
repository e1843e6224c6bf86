import ts from 'typescript';

/** A test that says, by a tag in its title, which statements it proves: `it('refuses a gap [UPL-232]', …)`. */
export interface Claim {
  ids: string[];
  /** Path of the file that holds the title, from the root of the repository. */
  file: string;
  /** Without its tag; what is not literal is shown as `…`. */
  title: string;
  /** What is wrong with the tag; such a claim counts for nothing. */
  fault: string | null;
}

/** What keeps one test from claiming everything. */
const MOST_PER_TEST = 3;

const tag = /\s*\[([A-Z]{3}-\d{3}(?:, [A-Z]{3}-\d{3})*)\]/g;
const almostTag = /\[\s*[A-Za-z]{3}-\d[^\]]*\]/;

/** The statements that a title is tagged with. */
export const tagsOf = (title: string): string[] =>
  [...title.matchAll(tag)].flatMap(([, ids]) => (ids ?? '').split(', '));

/** The claims in the text of one file, good and faulty. */
export function readClaims(file: string, text: string): Claim[] {
  // Parsing every file of the repository would take seconds; few of them have anything like a tag.
  if (!/\[\s*[A-Za-z]{3}-\d/.test(text)) return [];
  const claims: Claim[] = [];
  const visit = (node: ts.Node): void => {
    const called = ts.isCallExpression(node) ? calledTest(node) : null;
    if (called !== null) {
      const ids = tagsOf(called.title);
      const title = called.title.replace(tag, '');
      const fault = faultOf(called.name, title, ids);
      if (ids.length > 0 || fault !== null) claims.push({ ids, file, title, fault });
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS));
  return claims;
}

function faultOf(name: string, title: string, ids: readonly string[]): string | null {
  if (almostTag.test(title)) return 'a tag is written [ABC-123] or [ABC-123, ABC-124]';
  if (ids.length > MOST_PER_TEST) return `a test claims at most ${MOST_PER_TEST} statements`;
  return ids.length > 0 && name === 'describe' ? 'tags belong on a test' : null;
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
