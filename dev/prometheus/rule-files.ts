import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'charts/millrace/alerts');

const rule = z.strictObject({
  record: z.string().optional(),
  alert: z.string().optional(),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const group = z.strictObject({ name: z.string(), interval: z.string().optional(), rules: z.array(rule) });
const ruleFile = z.strictObject({ groups: z.array(group) });
type RuleGroup = z.output<typeof group>;
export type Rule = z.output<typeof rule>;

const ruleFiles: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => join(folder, name));

/** What the chart puts into rules for a release: its namespace, the job of its ServiceMonitor, and where runbooks are. */
export const installation = {
  ...{ namespace: 'media', job: 'video-millrace-ops', runbooks: 'https://millrace.dev/runbooks' },
} as const;

/** A rule file as the chart installs it. */
const rendered = (text: string): string =>
  Object.entries(installation).reduce((sum, [name, value]) => sum.replaceAll(`$${name}`, value), text);

/** The rules of an installation. */
export const readGroups = (): RuleGroup[] =>
  ruleFiles.flatMap((path) => ruleFile.parse(parse(rendered(readFileSync(path, 'utf8')))).groups);

export const readRules = (): Rule[] => readGroups().flatMap(({ rules }) => rules);
