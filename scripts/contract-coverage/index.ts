import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readClaims } from './claims.ts';
import { type Coverage, coverageOf } from './coverage.ts';
import { coveragePage } from './page.ts';
import { readStatements } from './statements.ts';

export { type Coverage, type TestRun, unproven } from './coverage.ts';

const contract = 'docs/contract.md';
const page = 'docs/contract-coverage.md';
const folders = ['packages', 'services', 'embedded', 'e2e', 'bench', 'scripts'];

/** The statements of the contract and the claims of every test in the repository (the working folder). */
export function readCoverage(): Coverage {
  return coverageOf(
    readStatements(readFileSync(contract, 'utf8')),
    folders.flatMap(sources).flatMap((file) => readClaims(file, readFileSync(file, 'utf8'))),
  );
}

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && !name.startsWith('.'))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sources(path);
      return entry.name.endsWith('.ts') ? [path] : [];
    });
}

export const writePage = (coverage: Coverage): void => writeFileSync(page, coveragePage(coverage));

/** True when the page in the repository is what the tests say now. */
export const isPageCurrent = (coverage: Coverage): boolean =>
  readFileSync(page, 'utf8') === coveragePage(coverage);
