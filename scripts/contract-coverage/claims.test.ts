import { describe, expect, it } from '@jest/globals';
import { readClaims, tagsOf } from './claims.ts';

const claims = (source: string) => readClaims('some.test.ts', source);
const faults = (source: string) => claims(source).map(({ fault }) => fault);

describe('readClaims', () => {
  it('reads the tags of every form of test', () => {
    const source = `
      it('refuses a gap [UPL-232]', () => {});
      test.only("two [UPL-001, UPL-002]", async () => {});
      it.each([['a']])('%s is 400 [UPL-003]', () => {});
      it.each\`a\${1}\`('by a table [UPL-004]', () => {});
      it(\`says \${name} [UPL-005]\`, () => {});
      it('has no tag', () => {});`;
    expect(claims(source).map(({ ids, title, fault }) => [title, ids, fault])).toEqual([
      ['refuses a gap', ['UPL-232'], null],
      ['two', ['UPL-001', 'UPL-002'], null],
      ['%s is 400', ['UPL-003'], null],
      ['by a table', ['UPL-004'], null],
      ['says …', ['UPL-005'], null],
    ]);
  });

  it('takes no notice of comments and of other strings', () => {
    expect(
      claims(`// it('one [UPL-001]')\nconst a = "it('two [UPL-002]')"; note('three [UPL-003]');`),
    ).toEqual([]);
  });

  it('refuses a fourth statement', () => {
    const source =
      "it('all [UPL-001, UPL-002] [UPL-003, UPL-004]', f); it('three [UPL-001, UPL-002, UPL-003]', f)";
    expect(faults(source)).toEqual(['a test claims at most 3 statements', null]);
  });

  it.each(['[UPL-1]', '[UPL-001,UPL-002]', '[upl-001]', '[UPL-001 UPL-002]', '[ UPL-001]'])(
    'refuses the spelling %s',
    (spelling) => {
      expect(faults(`it('x ${spelling}', f)`)).toEqual(['a tag is written [ABC-123] or [ABC-123, ABC-124]']);
    },
  );

  it('refuses a tag on a describe', () => {
    expect(faults("describe('many [UPL-001]', f)")).toEqual(['tags belong on a test']);
  });
});

describe('tagsOf', () => {
  it('finds every id in the title of a test that ran', () => {
    expect(tagsOf('a [UPL-001, UPL-002] b [UPL-003]')).toEqual(['UPL-001', 'UPL-002', 'UPL-003']);
    expect(tagsOf('seg-1 [a] UPL-001')).toEqual([]);
  });
});
