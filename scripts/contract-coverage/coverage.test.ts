import { describe, expect, it } from '@jest/globals';
import { type Claim } from './claims.ts';
import { coverageOf, unproven } from './coverage.ts';
import { coveragePage } from './page.ts';
import { type Statement } from './statements.ts';

const statements: Statement[] = ['UPL-001', 'UPL-002', 'CDN-001'].map((id) => ({
  id,
  text: `Sentence ${id}.`,
  section: id.startsWith('UPL') ? 'Uploads' : 'CDN',
}));
const claim = (...ids: string[]): Claim => ({
  ...{ ids, file: 'some.test.ts', title: `of ${ids.join(' and ')}`, fault: null },
});
const ran = (...tests: [title: string, status: string][]) => ({
  testResults: [{ assertionResults: tests.map(([title, status]) => ({ title, status })) }],
});

describe('coverageOf', () => {
  it('names the statements that no test claims', () => {
    expect(coverageOf(statements, [claim('UPL-001', 'CDN-001')]).uncovered).toEqual([statements[1]]);
  });

  it('takes no claim on a statement that does not exist, nor a faulty one, and says so', () => {
    const faulty = { ...claim('CDN-001'), fault: 'is misspelt' };
    const { faults, uncovered } = coverageOf(statements, [claim('UPL-009'), faulty]);
    expect(faults).toEqual([
      'some.test.ts: “of UPL-009”: there is no UPL-009',
      'some.test.ts: “of CDN-001”: is misspelt',
    ]);
    expect(uncovered).toEqual(statements);
  });
});

describe('unproven', () => {
  const coverage = coverageOf(statements, [claim('UPL-001'), claim('UPL-001', 'CDN-001')]);

  it('is content when each claimed statement has tests that ran and passed, in any run', () => {
    const runs = [ran(['a [UPL-001]', 'passed'], ['b', 'failed']), ran(['c [UPL-001, CDN-001]', 'passed'])];
    expect(unproven(coverage, runs)).toEqual([]);
  });

  it('names the tags that cannot be taken', () => {
    expect(unproven(coverageOf(statements, [claim('UPL-009')]), [])).toEqual([
      'some.test.ts: “of UPL-009”: there is no UPL-009',
    ]);
  });

  it('does not count what was skipped', () => {
    const runs = [ran(['a [UPL-001]', 'passed'], ['c [UPL-001, CDN-001]', 'pending'])];
    expect(unproven(coverage, runs)).toEqual(['CDN-001: no test of it ran']);
  });

  it('does not count a statement of which one test failed', () => {
    const runs = [ran(['a [UPL-001]', 'passed'], ['b [UPL-001]', 'failed'], ['c [CDN-001]', 'passed'])];
    expect(unproven(coverage, runs)).toEqual(['UPL-001: a test of it failed']);
  });

  it('does not take a tag that the sources do not show', () => {
    const runs = [ran(['a [UPL-001]', 'passed'], ['b [CDN-001]', 'passed'], ['c [UPL-002]', 'passed'])];
    expect(unproven(coverage, runs)).toEqual(["UPL-002: write the tag out in the test's title"]);
  });
});

describe('coveragePage', () => {
  it('lists every statement with its tests, and first those without', () => {
    const page = coveragePage(coverageOf(statements, [claim('UPL-001'), claim('UPL-001')]));
    expect(page).toContain('1 of 3 statements have a test.');
    expect(page).toContain('- Uploads (1 of 2): UPL-002\n- CDN (1 of 1): CDN-001\n');
    expect(page).toContain('- **UPL-001** Sentence UPL-001.\n  - `some.test.ts`: of UPL-001\n- **UPL-002**');
    expect(page).toContain('- **CDN-001** Sentence CDN-001.\n  - no test yet\n');
  });

  it('has no list of what is without a test when all have one', () => {
    const page = coveragePage(coverageOf(statements, [claim('UPL-001', 'UPL-002', 'CDN-001')]));
    expect(page).not.toContain('Without a test');
  });
});
