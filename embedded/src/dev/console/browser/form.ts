import { type Request } from './call.ts';
import { make } from './dom.ts';
import { type OpenApi, type Operation, type Parameter } from './operations.ts';
import { resolved, sampleOf } from './sample.ts';

export interface OperationForm {
  element: HTMLFormElement;
  /** What is to be sent, of the fields as they are. */
  request(): Request;
}

/** A form for one operation, filled in as far as earlier answers told. */
export function createForm(
  operation: Operation,
  document: OpenApi,
  known: ReadonlyMap<string, unknown>,
): OperationForm {
  const inputs = operation.parameters.map((parameter) => inputOf(parameter, known));
  const body = bodyOf(operation, document, known);
  const file = operation.id === 'startUpload' && body !== null ? filePicker(body.area) : null;
  const element = make(
    'form',
    {},
    ...inputs.map(({ row }) => row),
    ...(file === null ? [] : [file]),
    ...(body === null ? [] : [body.row]),
    make('p', {}, make('button', {}, 'Send')),
  );
  return {
    element,
    request() {
      const valueOf = (place: Parameter['in']): [string, string][] =>
        inputs
          .filter(({ parameter, input }) => parameter.in === place && input.value !== '')
          .map(({ parameter, input }) => [parameter.name, input.value]);
      let path = operation.path;
      for (const [name, value] of valueOf('path'))
        path = path.replace(`{${name}}`, encodeURIComponent(value));
      const query = new URLSearchParams(valueOf('query')).toString();
      const contentType = operation.body?.json === true ? 'application/json' : 'text/vtt';
      return {
        method: operation.method,
        path: query === '' ? path : `${path}?${query}`,
        headers: {
          ...Object.fromEntries(valueOf('header')),
          ...(body === null ? {} : { 'Content-Type': contentType }),
        },
        ...(body === null ? {} : { body: body.area.value }),
      };
    },
  };
}

function inputOf(parameter: Parameter, known: ReadonlyMap<string, unknown>) {
  const { name, required = false, description } = parameter;
  const value = parameter.in === 'path' ? known.get(name) : undefined;
  const input = make('input', {
    ...{ id: `field-${name}`, name, autocomplete: 'off', spellcheck: 'false' },
    ...(typeof value === 'string' ? { value } : {}),
    ...(required ? { required: '' } : {}),
    ...(description === undefined ? {} : { 'aria-describedby': `about-${name}` }),
  });
  const label = make('label', { for: input.id }, required ? name : `${name} (optional)`);
  const about = description === undefined ? [] : [make('small', { id: `about-${name}` }, description)];
  return { parameter, input, row: make('p', {}, label, input, ...about) };
}

function bodyOf({ body }: Operation, document: OpenApi, known: ReadonlyMap<string, unknown>) {
  if (body === null) return null;
  const area = make('textarea', { id: 'field-body', rows: '8', spellcheck: 'false' });
  const label = make('label', { for: area.id }, body.json ? 'Body, JSON' : 'Body');
  const row = make('div', {}, label, area);
  if (!body.json) area.value = body.example;
  else {
    const schema = resolved(body.schema, document);
    area.value = JSON.stringify(sampleOf(schema, document, known), null, 2);
    const fields = make('details', {}, make('summary', {}, 'What it may hold'));
    fields.append(make('pre', { tabindex: '0' }, JSON.stringify(schema, null, 2)));
    row.append(fields);
  }
  return { area, row };
}

/** Fills the body in with what a file says of itself; the file is kept for its parts. */
function filePicker(area: HTMLTextAreaElement): HTMLElement {
  const input = make('input', { id: 'field-file', type: 'file' });
  input.addEventListener('change', () => {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    const contentType = file.type === '' ? 'video/mp4' : file.type;
    area.value = JSON.stringify({ fileName: file.name, sizeBytes: file.size, contentType }, null, 2);
  });
  return make('p', {}, make('label', { for: input.id }, 'Of a file (optional)'), input);
}
