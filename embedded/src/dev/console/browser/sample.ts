import { type OpenApi, type Schema } from './operations.ts';

/** The schema itself where the document only refers to it. */
export function resolved(schema: Schema, document: OpenApi): Schema {
  const name = schema.$ref?.split('/').at(-1);
  if (name === undefined) return schema;
  return document.components?.schemas?.[name] ?? {};
}

/**
 * A value to begin with: what must be there, and fields whose value is known.
 * @param known what earlier answers said, by field name
 */
export function sampleOf(
  schema: Schema,
  document: OpenApi,
  known: ReadonlyMap<string, unknown>,
  name = '',
): unknown {
  if (known.has(name)) return known.get(name);
  const given = resolved(schema, document);
  const [example = given.default ?? given.enum?.[0]] = given.examples ?? [];
  if (example !== undefined) return example;
  if (given.properties !== undefined) {
    const fields = Object.entries(given.properties).filter(
      ([field]) => given.required?.includes(field) === true || known.has(field),
    );
    return Object.fromEntries(fields.map(([field, of]) => [field, sampleOf(of, document, known, field)]));
  }
  if (given.anyOf?.[0] !== undefined) return sampleOf(given.anyOf[0], document, known);
  switch ([given.type].flat()[0]) {
    case 'array':
      return given.items === undefined ? [] : [sampleOf(given.items, document, known)];
    case 'integer':
    case 'number':
      return Math.max(given.minimum ?? 0, 1);
    case 'boolean':
      return false;
    case 'object':
      return {};
    default:
      return '';
  }
}
