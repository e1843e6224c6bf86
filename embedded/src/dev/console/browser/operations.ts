/** A JSON Schema, as far as the console reads it. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  anyOf?: Schema[];
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  description?: string;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
  description?: string;
}

/** A route that a session may call. */
export interface Operation {
  id: string;
  method: string;
  path: string;
  tag: string;
  summary: string;
  description: string;
  parameters: Parameter[];
  /** Null for a route that takes none. */
  body: { json: true; schema: Schema } | { json: false; example: string } | null;
}

interface Media {
  schema: Schema;
  example?: string;
}
interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, unknown>[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Media> };
}

/** The API's OpenAPI document, as far as the console reads it. */
export interface OpenApi {
  paths: Record<string, Record<string, Described>>;
  components?: { schemas?: Record<string, Schema> };
}

/** Every operation of the document that takes a session, in its order. */
export const sessionOperations = (document: OpenApi): Operation[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => security.some((scheme) => 'session' in scheme))
      .map(([method, described]) => operationOf(method.toUpperCase(), path, described)),
  );

function operationOf(method: string, path: string, described: Described): Operation {
  const { operationId: id, tags, summary, description = '', parameters = [], requestBody } = described;
  const [[mediaType, media] = []] = Object.entries(requestBody?.content ?? {});
  const json = mediaType === 'application/json';
  return {
    ...{ id, method, path, tag: tags[0] ?? '', summary, description, parameters },
    body:
      media === undefined
        ? null
        : json
          ? { json, schema: media.schema }
          : { json, example: media.example ?? '' },
  };
}
