/**
 * Writes `charts/millrace/alerts/slo.yaml`: recording rules and burn-rate alerts of the promises in `slo/slos.ts`.
 * `--check` compares instead, and exits with 1 when it differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { sloRules } from './slo/rules.ts';
import { slos } from './slo/slos.ts';

const file = 'charts/millrace/alerts/slo.yaml';
const head = '# Written by scripts/generate-slo-rules.ts from scripts/slo/slos.ts. Change those.\n';
const rules = stringify(sloRules(slos), { lineWidth: 0, aliasDuplicateObjects: false });
// A namespace of digits alone stays text.
const text = head + rules.replaceAll('namespace: $namespace\n', "namespace: '$namespace'\n");
if (!process.argv.includes('--check')) writeFileSync(file, text);
else if (readFileSync(file, 'utf8') !== text) {
  console.error(`${file} is not what the promises give: run node scripts/generate-slo-rules.ts`);
  process.exitCode = 1;
}
