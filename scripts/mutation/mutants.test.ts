import { describe, expect, it } from '@jest/globals';
import { mutantOf } from './mutants.ts';

const source = 'const a = 1;\n  if (a > 1 &&\n      b) {\n}\n';
const at = (from: readonly [number, number], to: readonly [number, number], replacement: string) =>
  mutantOf(
    {
      location: { start: { line: from[0], column: from[1] }, end: { line: to[0], column: to[1] } },
      ...{ replacement, status: 'Survived' },
    },
    'a.ts',
    source,
  );

describe('a mutant', () => {
  it('says its line, what it was and what it became', () => {
    expect(at([2, 7], [2, 12], 'true')).toEqual({
      ...{ file: 'a.ts', line: 2, fate: 'survived' },
      text: 'if (a > 1 && | a > 1 => true',
    });
  });

  it('says what goes over lines in one', () => {
    expect(at([2, 7], [3, 8], 'a > 1\n  || b').text).toBe('if (a > 1 && | a > 1 && b => a > 1 || b');
  });

  it('is cut where it is long', () => {
    expect(at([1, 1], [1, 6], 'x'.repeat(101)).text).toBe(`const a = 1; | const => ${'x'.repeat(100)}…`);
  });

  it.each([
    ['Killed', 'killed'],
    ['Timeout', 'killed'],
    ['Survived', 'survived'],
    ['NoCoverage', 'survived'],
    ['RuntimeError', 'broken'],
    ['CompileError', 'broken'],
  ] as const)('that Stryker calls %s is %s', (status, fate) => {
    const location = { start: { line: 1, column: 1 }, end: { line: 1, column: 2 } };
    expect(mutantOf({ location, replacement: '', status }, 'a.ts', source).fate).toBe(fate);
  });
});
