/**
 * `npm test [-- PATTERN…]` and `npm run check`: the static checks, then every suite, each timed. Ends with one
 * plain line, `N passed, N failed, N skipped`. With CI=true a skipped test fails the run.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { readFlags } from '../dev/flags.ts';
import { isPageCurrent, readCoverage, type TestRun, unproven, writePage } from './contract-coverage/index.ts';
import { unmountUnder } from './suites/mounts.ts';
import { supervise } from './suites/supervise.ts';

interface Outcome {
  name: string;
  seconds: number;
  passed: number;
  failed: number;
  skipped: number;
}

type Counts = Omit<Outcome, 'name' | 'seconds'>;

const bin = (name: string): string => join('node_modules', '.bin', name);
const folders = ['packages', 'services', 'embedded', 'e2e', 'bench', 'scripts', 'load-tests'];

const checks: [name: string, command: string, args: string[]][] = [
  ['lint', bin('eslint'), ['.']],
  ['format', bin('prettier'), ['--check', '--log-level', 'warn', '.']],
  ['types', bin('tsc'), ['-p', '.']],
  ['browser types', bin('tsc'), ['-p', 'packages/player/src/browser']],
  ['console types', bin('tsc'), ['-p', 'embedded/src/dev/console/browser']],
  ['load test types', bin('tsc'), ['-p', 'load-tests']],
  ['import rules', bin('depcruise'), ['--config', '.dependency-cruiser.cjs', ...folders]],
  ['dead code', bin('knip'), []],
  // Whatever a generator writes is in the repository, and must be what it would write now.
  ...readdirSync('scripts')
    .filter((file) => /^generate-.*\.ts$/.test(file))
    .map((file): [string, string, string[]] => [file, process.execPath, [join('scripts', file), '--check']]),
];
const suites = ['unit', 'integration', 'e2e'];

/** Runs a command to its end; `hear` gets what it prints. */
function run(command: string, args: readonly string[], hear: (text: string) => void): Promise<Counts> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear);
    child.once('error', reject);
    child.once('close', (code) => {
      const failed = code === 0 ? 0 : 1;
      resolve({ passed: 1 - failed, failed, skipped: 0 });
    });
  });
}

async function timed(name: string, work: () => Promise<Counts>): Promise<Outcome> {
  console.log(`\n== ${name}`);
  return clocked(name, work);
}

async function clocked(name: string, work: () => Promise<Counts>): Promise<Outcome> {
  const startedAt = performance.now();
  const counts = await work();
  return { name, seconds: (performance.now() - startedAt) / 1000, ...counts };
}

/** Says what it printed when it has ended: others may run beside it. */
const check = (name: string, command: string, args: string[]): Promise<Outcome> =>
  clocked(name, async () => {
    let output = '';
    const counts = await run(command, args, (text) => (output += text));
    console.log(`\n== ${name}\n${output.trimEnd()}`);
    return counts;
  });

/** Two at a time: lint, which comes first, takes longer than all others together. */
async function runChecks(): Promise<Outcome[]> {
  const left = [...checks];
  const done: Outcome[] = [];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) done.push(await check(...next));
  };
  await Promise.all([lane(), lane()]);
  return done;
}

interface JestResult extends TestRun {
  success: boolean;
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  numFailedTestSuites: number;
  numRuntimeErrorTestSuites: number;
  testResults: (TestRun['testResults'][number] & { name: string; startTime: number; endTime: number })[];
}

const SLOWEST_SHOWN = 5;
/** No test, and nothing before or after the tests of a file, takes this long. */
const IDLE_MS = 600_000;

function showSlowest({ testResults }: JestResult): void {
  const bySeconds = testResults
    .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1000 }))
    .sort((a, b) => b.seconds - a.seconds);
  for (const { name, seconds } of bySeconds.slice(0, SLOWEST_SHOWN)) {
    console.log(`  ${seconds.toFixed(1).padStart(7)} s  ${relative('.', name)}`);
  }
}

const results: JestResult[] = [];

/**
 * Runs one jest project. A suite that cannot even load, an exit code that jest does not explain, a hang, and a
 * process or file that is left behind are failures.
 */
const suite = (name: string, patterns: readonly string[]) => async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-jest-'));
  const output = join(folder, 'result.json');
  try {
    const args = ['--selectProjects', name, '--json', '--outputFile', output, '--passWithNoTests'];
    const reporters = ['default', './scripts/suites/progress-reporter.mjs'].flatMap((each) => [
      '--reporters',
      each,
    ]);
    // Not in the run's own temporary folder, which is gone when it ends.
    const cache = ['--cacheDirectory', join('.cache', 'jest')];
    const { code, complaints } = await supervise(
      bin('jest'),
      [...args, ...reporters, ...cache, ...patterns],
      {
        ...{ folder, idleMs: IDLE_MS },
        env: { NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning' },
      },
    );
    for (const complaint of complaints) console.error(`${name}: ${complaint}`);
    if (!existsSync(output)) return { passed: 0, failed: Math.max(1, complaints.length), skipped: 0 };
    const result = JSON.parse(readFileSync(output, 'utf8')) as JestResult;
    results.push(result);
    showSlowest(result);
    const broken = result.numRuntimeErrorTestSuites;
    const failed = result.numFailedTests + broken + complaints.length;
    return {
      passed: result.numPassedTests,
      failed: failed === 0 && (code !== 0 || !result.success) ? 1 : failed,
      skipped: result.numPendingTests + result.numTodoTests,
    };
  } catch (error) {
    console.error(error);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    unmountUnder(folder);
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Holds the contract's statements against the tests that ran. When all that is claimed was proven, it writes
 * `docs/contract-coverage.md`; in CI the page must be right already.
 */
function contractCoverage(): string[] {
  const coverage = readCoverage();
  const { statements, uncovered } = coverage;
  console.log(`${uncovered.length} of ${statements.length} statements of the contract have no test.`);
  const complaints = [...unproven(coverage, results), ...uncovered.map(({ id }) => `${id}: has no test`)];
  if (process.env['CI'] !== 'true' && complaints.length === 0) writePage(coverage);
  else if (!isPageCurrent(coverage)) complaints.push('docs/contract-coverage.md is not what the tests say');
  return complaints;
}

const coverageCheck = () => {
  let complaints: string[];
  try {
    complaints = contractCoverage();
  } catch (error) {
    complaints = [error instanceof Error ? error.message : String(error)];
  }
  for (const complaint of complaints) console.error(complaint);
  const failed = complaints.length === 0 ? 0 : 1;
  return Promise.resolve({ passed: 1 - failed, failed, skipped: 0 });
};

const { values: flags, positionals: patterns } = readFlags('npm test [-- PATTERN…]', {
  allowPositionals: true,
  options: { checks: { type: 'boolean', default: false } },
});
const outcomes: Outcome[] = [];
if (patterns.length === 0) outcomes.push(...(await runChecks()));
if (flags.checks) {
  // A run of every suite looks at the page when it knows what passed.
  const page = [join('scripts', 'contract-coverage.ts'), '--check'];
  outcomes.push(await check('contract', process.execPath, page));
} else {
  if (patterns.length === 0) {
    // Apart from the suites, which are watched for progress.
    const build = join('dev', 'kubernetes', 'build.ts');
    const tell = (text: string): void => void process.stdout.write(text);
    outcomes.push(await timed('kubernetes', () => run(process.execPath, [build], tell)));
  }
  for (const name of suites) outcomes.push(await timed(name, suite(name, patterns)));
  if (patterns.length === 0) outcomes.push(await timed('contract', coverageCheck));
}

const sum = (key: 'passed' | 'failed' | 'skipped'): number =>
  outcomes.reduce((total, outcome) => total + outcome[key], 0);
console.log('\nTimes:');
for (const { name, seconds, failed } of outcomes) {
  console.log(`  ${name.padEnd(14)} ${seconds.toFixed(1).padStart(7)} s${failed > 0 ? '  FAILED' : ''}`);
}
// A misspelt pattern is not a success.
const nothing = patterns.length > 0 && sum('passed') + sum('failed') + sum('skipped') === 0;
if (nothing) console.log(`\nNo test matches ${patterns.join(' ')}.`);
const skippedFails = process.env['CI'] === 'true' && sum('skipped') > 0;
if (skippedFails) console.log('\nA skipped test fails the run with CI=true.');
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
process.exitCode = sum('failed') > 0 || skippedFails || nothing ? 1 : 0;
