import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { chart } from './render.ts';

interface Schema {
  $defs?: Record<string, Schema>;
  $ref?: string;
  properties?: Record<string, Schema>;
  required?: string[];
}

/** Paths of values that have a default and may be null all the same. */
function notRequired(
  schema: Schema,
  defaults: object,
  definitions: Record<string, Schema>,
  path = '',
): string[] {
  const { properties = {}, required = [] } = definitions[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
  return Object.entries(defaults).flatMap(([name, value]: [string, unknown]) => {
    const inner = properties[name];
    // Free maps, and what has no default.
    if (inner === undefined || value === null) return [];
    const here = `${path}${name}`;
    const below =
      typeof value === 'object' && !Array.isArray(value)
        ? notRequired(inner, value, definitions, `${here}.`)
        : [];
    return required.includes(name) ? below : [here, ...below];
  });
}

// Helm takes a null for "leave it out": a policy would be open then, or a template break.
it('the schema of the chart’s values refuses null wherever there is a default', async () => {
  const defaults = parse(await readFile(join(chart, 'values.yaml'), 'utf8')) as object;
  const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8')) as Schema;
  expect(notRequired(schema, defaults, schema.$defs ?? {})).toEqual([]);
  const without = { ...schema, required: schema.required?.filter((name) => name !== 'image') ?? [] };
  expect(notRequired(without, defaults, schema.$defs ?? {})).toEqual(['image']);
});
