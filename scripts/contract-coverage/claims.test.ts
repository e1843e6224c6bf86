import { describe, expect, it } from '@jest/globals';
import { readClaims, tagsOf } from './claims.ts';

const claims = (source: string) => readClaims('some.test.ts', source);

describe('readClaims', () => {
  it('reads the tags of every form of test', () => {
    const source = `
      it('refuses a gap [UPL-232]', () => {});
      test.only("two [UPL-001, UPL-002]", async () => {});
      it.each([['a']])('%s is 400 [UPL-003]', () => {});
      it.each\`a\${1}\`('by a table [UPL-004]', () => {});
      it(\`says \${name} [UPL-005]\`, () => {});
      it('has no tag', () => {});`;
    expect(claims(source)).toEqual([
      { ids: ['UPL-232'], file: 'some.test.ts', title: 'refuses a gap' },
      { ids: ['UPL-001', 'UPL-002'], file: 'some.test.ts', title: 'two' },
      { ids: ['UPL-003'], file: 'some.test.ts', title: '%s is 400' },
      { ids: ['UPL-004'], file: 'some.test.ts', title: 'by a table' },
      { ids: ['UPL-005'], file: 'some.test.ts', title: 'says …' },
    ]);
  });

  it('takes no notice of comments and of other strings', () => {
    expect(
      claims(`// it('one [UPL-001]')\nconst a = "it('two [UPL-002]')"; note('three [UPL-003]');`),
    ).toEqual([]);
  });

  it('refuses a fourth statement', () => {
    expect(() => claims("it('all [UPL-001, UPL-002] [UPL-003, UPL-004]', f)")).toThrow(
      'at most 3 statements',
    );
  });

  it.each(['[UPL-1]', '[UPL-001,UPL-002]', '[upl-001]', '[UPL-001 UPL-002]', '[ UPL-001]'])(
    'refuses the spelling %s',
    (spelling) => {
      expect(() => claims(`it('x ${spelling}', f)`)).toThrow('a tag is written');
    },
  );

  it('refuses a tag on a describe', () => {
    expect(() => claims("describe('many [UPL-001]', f)")).toThrow('tags belong on a test');
  });
});

describe('tagsOf', () => {
  it('finds every id in the title of a test that ran', () => {
    expect(tagsOf('a [UPL-001, UPL-002] b [UPL-003]')).toEqual(['UPL-001', 'UPL-002', 'UPL-003']);
    expect(tagsOf('seg-1 [a] UPL-001')).toEqual([]);
  });
});
