/**
 * `npm run mutate [-- AREA… | FILE…] [--force]`: whether the tests notice when the code is wrong. Mutates the areas
 * (all unless named) or single files of them, one mutant after the other; a run over everything writes
 * `docs/mutation.md`. What was judged before is not judged again until the code or a test of it changes;
 * `--force` forgets. Exits with 1 when an area falls short, or the list of survivors is not true.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import { readFlags } from '../dev/flags.ts';
import { type Area, areas } from './mutation/areas.ts';
import { withDatabase } from './mutation/database.ts';
import { type AreaResult, mutationPage } from './mutation/page.ts';
import { runArea } from './mutation/run-area.ts';
import { complaintsOf, type Excuse, neededScore, tallyOf } from './mutation/verdict.ts';

const { values, positionals } = readFlags('npm run mutate -- [FILE…]', {
  allowPositionals: true,
  options: { force: { type: 'boolean', default: false } },
});
const excuses = JSON.parse(readFileSync('scripts/mutation/survivors.json', 'utf8')) as Excuse[];
const results: AreaResult[] = [];
const complaints: string[] = [];

/** The files of an area that were asked for; none means all of them. Null when it was not asked for. */
function wanted({ name, mutate }: Area): string[] | null {
  if (positionals.length === 0 || positionals.includes(name)) return [];
  const files = positionals.filter((file) => mutate.some((glob) => matchesGlob(file, glob)));
  return files.length === 0 ? null : files;
}

async function judge(area: Area, files: readonly string[]): Promise<void> {
  console.log(`\n== ${area.name}`);
  const startedAt = performance.now();
  const run = () => runArea(area, { files, force: values.force });
  const mutants = await (area.database ? withDatabase(run) : run());
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  results.push({ area, mutants });
  const { killed, survived, broken, score } = tallyOf(mutants);
  const counts = `${killed} killed, ${survived} survived, ${broken} broken`;
  console.log(`${area.name}: ${counts}, ${score.toFixed(1)} % in ${seconds} s`);
  complaints.push(...complaintsOf(mutants, excuses));
  if (files.length === 0 && score < neededScore) {
    complaints.push(`${area.name}: ${score.toFixed(1)} % are killed, ${neededScore} % are needed`);
  }
}

try {
  for (const area of areas) {
    const files = wanted(area);
    if (files !== null) await judge(area, files);
  }
  if (results.length === 0) complaints.push(`neither an area nor a file of one: ${positionals.join(' ')}`);
} catch (error) {
  complaints.push(error instanceof Error ? error.message : String(error));
}
if (positionals.length === 0 && complaints.length === 0) {
  writeFileSync('docs/mutation.md', mutationPage(results, excuses));
}
for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length > 0 ? 1 : 0;
