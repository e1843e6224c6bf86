/**
 * Writes `charts/millrace/dashboards/*.json`, which the chart installs, from `dashboards/`. `--check` compares
 * instead, and exits with 1 when one differs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { encode } from './dashboards/encode.ts';
import { grafanaDashboard } from './dashboards/grafana.ts';
import { overview } from './dashboards/overview.ts';
import { playback } from './dashboards/playback.ts';
import { webhooks } from './dashboards/webhooks.ts';

for (const dashboard of [overview, encode, playback, webhooks]) {
  const file = `charts/millrace/dashboards/${dashboard.name}.json`;
  const text = `${JSON.stringify(grafanaDashboard(dashboard), null, 1)}\n`;
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${file} is not what scripts/dashboards gives: run node scripts/generate-dashboards.ts`);
    process.exitCode = 1;
  }
}
