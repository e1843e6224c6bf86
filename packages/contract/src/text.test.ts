import { describe, expect, it } from '@jest/globals';
import { looseText, text } from './text.ts';

const name = text({ max: 5 });
const accepts = (schema: typeof name, value: unknown): boolean => schema.safeParse(value).success;
const messageFor = (schema: typeof name, value: unknown): string | undefined =>
  schema.safeParse(value).error?.issues[0]?.message;

describe('text', () => {
  it.each(['a', 'abcde', '😀😀😀😀😀', ' ab ', 'é', '日本語', 'a\u200db'])(
    'takes %j verbatim [CNV-012, CNV-013]',
    (value) => {
      expect(name.parse(value)).toBe(value);
    },
  );

  it.each([
    ['', 'is blank'],
    ['   ', 'is blank'],
    ['\u3000', 'is blank'],
    ['abcdef', 'has 6 characters, at most 5 are allowed'],
    ['😀😀😀😀😀😀', 'has 6 characters, at most 5 are allowed'],
    ['a\0', 'contains a control character'],
    ['a\nb', 'contains a control character'],
    ['a\u007f', 'contains a control character'],
    ['a\u0085', 'contains a control character'],
    ['a\ud800', 'contains a lone surrogate'],
    ['\udc00a', 'contains a lone surrogate'],
  ])('refuses %j [CNV-012, CNV-014]', (value, message) => {
    expect(messageFor(name, value)).toBe(message);
  });

  it.each([null, 1, [], {}, undefined])('refuses %j, which is no string', (value) => {
    expect(accepts(name, value)).toBe(false);
  });

  it('may be empty where nothing is needed', () => {
    expect(accepts(text({ min: 0, max: 3 }), '')).toBe(true);
  });
});

describe('looseText', () => {
  const file = looseText({ max: 5 });
  it.each(['', ' ', 'a\nb', '\u0001', '😀😀😀😀😀'])('takes %j [CNV-015]', (value) => {
    expect(file.parse(value)).toBe(value);
  });
  it.each(['a\0', '\ud800', 'abcdef'])('refuses %j [CNV-015]', (value) => {
    expect(accepts(file, value)).toBe(false);
  });
});
