import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, matchesGlob, relative } from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { type Area } from './areas.ts';
import { type Mutant, mutantOf } from './mutants.ts';

/** Kept between runs, so that a run tests what has changed. */
const cache = '.cache/mutation';
const noTests = ['!**/*.test.ts', '!**/testing/**'];

/**
 * Makes every mutant and runs the tests that reach it.
 * @param options.files those to mutate, when not the whole area; `force` tests again what has not changed
 */
export async function runArea(
  { name, mutate }: Area,
  options: { files: readonly string[]; force: boolean },
): Promise<Mutant[]> {
  process.env['MILLRACE_MUTATION_AREA'] = name;
  forgetSurvivors(join(cache, `${name}.json`));
  const wanted = options.files.length > 0 ? options.files : mutate;
  const stryker = new Stryker({
    mutate: [...wanted, ...noTests],
    packageManager: 'npm',
    plugins: ['@stryker-mutator/jest-runner'],
    testRunner: 'jest',
    testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
    jest: { configFile: 'scripts/mutation/jest.config.mjs', enableFindRelatedTests: true },
    coverageAnalysis: 'perTest',
    // One at a time: tests measure real time, and some of them share a database server.
    concurrency: 1,
    // Long, since a mutant that a busy machine is late with would pass for killed.
    timeoutMS: 20_000,
    incremental: true,
    force: options.force,
    incrementalFile: join(cache, `${name}.json`),
    tempDirName: join(cache, 'sandbox'),
    ignorePatterns: ['/.cache', '/.millrace', '/packages/testing/media', '/docs', '/e2e', '/bench'],
    reporters: ['progress-append-only'],
    allowConsoleColors: false,
    disableTypeChecks: false,
    warnings: false,
  });
  // Stryker also tells what it knows of files that were not asked for, or are there no more.
  const asked = (file: string): boolean =>
    wanted.some((glob) => matchesGlob(file, glob)) &&
    !noTests.some((glob) => matchesGlob(file, glob.slice(1))) &&
    existsSync(file);
  const byFile = Map.groupBy(await stryker.runMutationTest(), ({ fileName }) => relative('.', fileName));
  return [...byFile].flatMap(([file, results]) => {
    if (!asked(file)) return [];
    const source = readFileSync(file, 'utf8');
    return results.map((result) => mutantOf(result, file, source));
  });
}

/**
 * Lets survivors be judged anew. Stryker remembers those that are made while a file loads until the code changes,
 * though a new test may notice them.
 */
function forgetSurvivors(report: string): void {
  if (!existsSync(report)) return;
  const known = JSON.parse(readFileSync(report, 'utf8')) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  for (const file of Object.values(known.files)) {
    file.mutants = file.mutants.filter(({ status }) => status !== 'Survived');
  }
  writeFileSync(report, JSON.stringify(known));
}
