import { describe, expect, it } from '@jest/globals';
import { areas } from './areas.ts';
import { type Mutant } from './mutants.ts';
import { mutationPage } from './page.ts';
import { complaintsOf, tallyOf } from './verdict.ts';

const mutant = (text: string, fate: Mutant['fate'], file = 'a.ts'): Mutant => ({ file, line: 7, text, fate });
const excuse = (text: string, file = 'a.ts') => ({ file, reason: 'It does not matter.', mutants: [text] });

describe('the tally', () => {
  it('leaves out what is broken', () => {
    const fates = ['killed', 'killed', 'killed', 'survived', 'broken'] as const;
    expect(tallyOf(fates.map((fate) => mutant('x', fate)))).toEqual({
      ...{ killed: 3, survived: 1, broken: 1, score: 75 },
    });
    expect(tallyOf([]).score).toBe(100);
  });
});

describe('the list of survivors', () => {
  it('is true when each has a reason, one for all that read alike', () => {
    const mutants = [mutant('x', 'survived'), mutant('x', 'survived'), mutant('y', 'killed')];
    expect(complaintsOf(mutants, [excuse('x')])).toEqual([]);
  });

  it('lacks a survivor without a reason, which another file’s is not', () => {
    expect(complaintsOf([mutant('x', 'survived')], [excuse('x', 'b.ts')])).toEqual([
      'a.ts:7 survives without a reason: x',
    ]);
  });

  it('has no reason too many, in files that were looked at', () => {
    const excuses = [excuse('x'), excuse('z'), excuse('x', 'b.ts')];
    expect(complaintsOf([mutant('x', 'killed')], excuses)).toEqual([
      'a.ts has a reason for no survivor: x',
      'a.ts has a reason for no survivor: z',
    ]);
  });
});

describe('the page', () => {
  it('has a row for each area, and what survived in it with the reason', () => {
    const [area] = areas;
    if (area === undefined) throw new Error('there is no area');
    const mutants = [mutant('x `a`', 'survived'), mutant('y', 'killed'), mutant('z', 'broken')];
    const page = mutationPage([{ area, mutants }], [excuse('x `a`'), excuse('x', 'b.ts')]);
    expect(page).toContain(`| ${area.title} | 3 | 1 | 1 | 1 | 50.0 % |`);
    expect(page.slice(page.indexOf(`## ${area.title}`)).split('\n')).toEqual([
      ...[`## ${area.title}`, '', '- `a.ts`: It does not matter.', '  - `` x `a` ``', ''],
    ]);
  });
});
