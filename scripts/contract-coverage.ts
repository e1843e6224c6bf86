/**
 * Writes `docs/contract-coverage.md` from the tags in the tests without running them; `npm test` runs them and writes
 * it too. `--check` compares instead. Exits with 1 when the page differs or a tag cannot be taken. Prints how many statements have no test.
 */
import { isPageCurrent, readCoverage, writePage } from './contract-coverage/index.ts';

const coverage = readCoverage();
const { statements, uncovered, faults } = coverage;
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
if (!process.argv.includes('--check')) writePage(coverage);
else if (!isPageCurrent(coverage)) {
  console.error('docs/contract-coverage.md is not what the tests say: run node scripts/contract-coverage.ts');
  process.exitCode = 1;
}
console.log(`${uncovered.length} of ${statements.length} statements of the contract have no test.`);
