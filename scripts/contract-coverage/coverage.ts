import { type Claim, tagsOf } from './claims.ts';
import { type Statement } from './statements.ts';

/** The part of a jest result file that tells which tests ran, and how they went. */
export interface TestRun {
  testResults: { assertionResults: { title: string; status: string }[] }[];
}

export interface Coverage {
  statements: readonly Statement[];
  /** The claims on each statement, in the order of files. */
  claims: ReadonlyMap<string, readonly Claim[]>;
  uncovered: readonly Statement[];
  /** Tags that cannot be taken, each with its test and the reason. */
  faults: readonly string[];
}

/** Joins statements and claims. */
export function coverageOf(statements: readonly Statement[], claims: readonly Claim[]): Coverage {
  const byId = new Map<string, Claim[]>(statements.map(({ id }) => [id, []]));
  const faults: string[] = [];
  const fault = ({ file, title }: Claim, reason: string): number =>
    faults.push(`${file}: “${title}”: ${reason}`);
  for (const claim of claims) {
    if (claim.fault !== null) {
      fault(claim, claim.fault);
      continue;
    }
    for (const id of new Set(claim.ids)) {
      const claimed = byId.get(id);
      if (claimed === undefined) fault(claim, `there is no ${id}`);
      else claimed.push(claim);
    }
  }
  const uncovered = statements.filter(({ id }) => byId.get(id)?.length === 0);
  return { statements, claims: byId, uncovered, faults };
}

/**
 * What is to be said against the claims after a whole run of the tests: a statement counts only when a test that is
 * tagged with it ran, and when all that ran passed.
 */
export function unproven({ claims, faults }: Coverage, runs: readonly TestRun[]): string[] {
  const passed = new Set<string>();
  const failed = new Set<string>();
  for (const { title, status } of runs
    .flatMap(({ testResults }) => testResults)
    .flatMap((file) => file.assertionResults)) {
    if (status === 'passed') tagsOf(title).forEach((id) => passed.add(id));
    else if (status === 'failed') tagsOf(title).forEach((id) => failed.add(id));
  }
  const complaints = [...faults];
  for (const [id, claimed] of claims) {
    if (failed.has(id)) complaints.push(`${id}: a test of it failed`);
    else if (claimed.length > 0 && !passed.has(id)) complaints.push(`${id}: no test of it ran`);
  }
  // A title that is put together at run time escapes the page, and the limit of statements per test.
  for (const id of passed) {
    if ((claims.get(id) ?? []).length === 0) complaints.push(`${id}: write the tag out in the test's title`);
  }
  return complaints;
}
