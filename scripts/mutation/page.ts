import { type Area } from './areas.ts';
import { type Mutant } from './mutants.ts';
import { type Excuse, neededScore, type Tally, tallyOf } from './verdict.ts';

export interface AreaResult {
  area: Area;
  mutants: readonly Mutant[];
}

/** `docs/mutation.md`: what was measured, and every survivor with its reason. */
export function mutationPage(results: readonly AreaResult[], excuses: readonly Excuse[]): string {
  return [
    '# What the tests notice',
    '',
    'Made by `npm run mutate`, which changes the code in small ways, one at a time, and runs the tests that reach the',
    'change. A change that no test notices is a survivor. The run fails when an area falls short of',
    `${neededScore} %, when a survivor is not listed here with a reason, and when the list names one that does not`,
    'survive. Reasons are kept in `scripts/mutation/survivors.json`. Broken are those with which a file of tests does',
    'not even load; they count for nothing.',
    '',
    '| area | mutants | killed | survived | broken | score |',
    '| --- | --: | --: | --: | --: | --: |',
    ...results.map(({ area, mutants }) => `| ${area.title} | ${row(mutants.length, tallyOf(mutants))} |`),
    '',
    ...results.flatMap(({ area, mutants }) => section(area, mutants, excuses)),
  ].join('\n');
}

const row = (mutants: number, { killed, survived, broken, score }: Tally): string =>
  [mutants, killed, survived, broken, `${score.toFixed(1)} %`].join(' | ');

function section({ title }: Area, mutants: readonly Mutant[], excuses: readonly Excuse[]): string[] {
  const files = new Set(mutants.map(({ file }) => file));
  const mine = excuses.filter(({ file }) => files.has(file));
  if (mine.length === 0) return [];
  const entries = mine.map(({ file, reason, mutants: texts }) => [
    `- \`${file}\`: ${reason}`,
    ...texts.map((text) => `  - ${code(text)}`),
  ]);
  return [`## ${title}`, '', ...entries.flat(), ''];
}

/** Code may hold backticks itself. */
const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``);
