import { type FieldError, ProblemError } from '@millrace/contract';
import { type z } from 'zod';

/** Parses each part with its schema; 400 naming every field at fault of all parts at once. */
export function validate(
  parts: readonly { schema: z.ZodType | undefined; value: unknown; root: string }[],
): unknown[] {
  const errors: FieldError[] = [];
  const values = parts.map(({ schema, value, root }) => {
    if (schema === undefined) return undefined;
    const result = schema.safeParse(value, { reportInput: true });
    if (result.success) return result.data;
    errors.push(...result.error.issues.flatMap((issue) => fieldErrors(issue, root)));
    return undefined;
  });
  if (errors.length > 0) {
    const named = errors.map(({ path, message }) => `${path} ${message}`).slice(0, 3);
    throw new ProblemError('invalid_request', { detail: `${named.join('; ')}.`, errors });
  }
  return values;
}

/** As many as a body of 1 MiB may have wrong, nobody reads. */
const maximumNamed = 20;

function fieldErrors(issue: z.core.$ZodIssue, root: string): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, maximumNamed).map((key) => ({
      path: pathOf([...issue.path, key.slice(0, 100)], root),
      message: 'is not a known field',
    }));
  }
  return [{ path: pathOf(issue.path, root), message: messageOf(issue) }];
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') {
    return issue.input === undefined ? 'is required' : `must be of type ${issue.expected}`;
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`;
  return issue.message;
}

/** `parts[1].etag`, or the root's name for the whole. */
function pathOf(path: readonly PropertyKey[], root: string): string {
  const text = path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
  return text === '' ? root : text;
}
