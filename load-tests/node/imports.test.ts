import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Everything that k6 loads. */
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) =>
  /^([^/]+|(src|k6)\/.*)\.ts$/.test(file),
);
const entries = files.filter((file) => !file.includes('/'));

/** What a file imports, types too. */
const importsOf = (file: string): string[] =>
  ts.preProcessFile(readFileSync(join(root, file), 'utf8')).importedFiles.map(({ fileName }) => fileName);

/** k6 finds no npm packages and has nothing of Node. */
describe('of what k6 loads', () => {
  it('there are five entry files', () => {
    expect(entries.sort()).toEqual(
      ['api-mix', 'hold-under-load', 'playback', 'upload', 'webhook-storm'].map((name) => `${name}.ts`),
    );
  });

  it.each(files)('%s imports files beside it by their whole name, and modules of k6 in k6/ alone', (file) => {
    for (const name of importsOf(file)) {
      if (!name.startsWith('.')) {
        expect([file, name]).toEqual([expect.stringMatching(/^k6\//), expect.stringMatching(/^k6\/\w+$/)]);
      } else {
        expect(files).toContain(relative(root, join(root, dirname(file), name)));
      }
    }
  });

  it.each(files)('%s has only syntax that k6 runs', (file) => {
    const found: string[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isForOfStatement(node) && node.awaitModifier) found.push('for await');
      if (ts.isFunctionLike(node) && 'asteriskToken' in node && node.asteriskToken) found.push('generator');
      if (ts.isRegularExpressionLiteral(node) && /\(\?<|\\p\{/.test(node.text)) found.push(node.text);
      if (ts.isAwaitExpression(node) && !ts.findAncestor(node, ts.isFunctionLike))
        found.push('await at the top');
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.ES2022, true));
    expect(found).toEqual([]);
  });
});
