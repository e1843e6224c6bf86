/**
 * Writes the table of values in the chart's README from `values.schema.json` (what each means) and `values.yaml` (what
 * it is unless told). With --check it only says whether the table is what it would write, by its exit code.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { format, resolveConfig } from 'prettier';

interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

const path = (file: string): string => fileURLToPath(new URL(`../charts/millrace/${file}`, import.meta.url));
const schema = JSON.parse(readFileSync(path('values.schema.json'), 'utf8')) as Schema;
const defaults: unknown = parse(readFileSync(path('values.yaml'), 'utf8'));
const [begin, end] = [
  '<!-- values: written by scripts/generate-chart-readme.ts -->',
  '<!-- end of values -->',
];

/** A reference's own words win over those of what it refers to. */
function resolve(each: Schema): Schema {
  const name = each.$ref?.replace('#/$defs/', '');
  const target = name === undefined ? {} : schema.$defs?.[name];
  if (target === undefined) throw new Error(`the schema has no ${name ?? ''}`);
  return { ...target, ...each };
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** One row for each value that is not a group of others; a group is told by the rows below it. */
function rowsOf(each: Schema, name: string, value: unknown): string[][] {
  const { properties = {}, items, description = '' } = resolve(each);
  const inner = Object.entries(properties);
  if (inner.length > 0) {
    const own = name === '' ? [] : [[`**\`${name}\`**`, '', description]];
    const prefix = name === '' ? '' : `${name}.`;
    return [...own, ...inner.flatMap(([key, child]) => rowsOf(child, prefix + key, field(value, key)))];
  }
  const element = items === undefined ? {} : resolve(items);
  if (element.properties === undefined) return [[`\`${name}\``, shown(value), description]];
  const [first] = Array.isArray(value) ? (value as unknown[]) : [];
  const [, ...fields] = rowsOf(element, `${name}[]`, first);
  return [[`**\`${name}\`**`, 'one', description], ...fields];
}

const shown = (value: unknown): string =>
  value === undefined || value === '' ? '' : `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``;

const rows = [['value', 'unless told', 'what it is'], ['-', '-', '-'], ...rowsOf(schema, '', defaults)];
const table = rows.map((row) => `| ${row.join(' | ')} |`).join('\n');
const readme = readFileSync(path('README.md'), 'utf8');
const [before, rest] = readme.split(begin);
const after = rest?.split(end)[1];
if (before === undefined || after === undefined) throw new Error('the README has no place for the values');
const wanted = await format(`${before}${begin}\n\n${table}\n\n${end}${after}`, {
  ...(await resolveConfig(path('README.md'))),
  parser: 'markdown',
});

if (!process.argv.includes('--check')) writeFileSync(path('README.md'), wanted);
else if (wanted !== readme) {
  process.stderr.write('charts/millrace/README.md is not what generate-chart-readme.ts would write\n');
  process.exitCode = 1;
}
