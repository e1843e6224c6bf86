import { z } from 'zod';

const characters = (text: string): number => Array.from(text).length;
// C0, DEL and C1: they hide in titles and break logs and terminals.
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/;

/**
 * A string that people read: `min` to `max` Unicode code points, kept verbatim; blank text, control characters
 * (NUL too) and lone surrogates are refused.
 */
export const text = (limits: { min?: number; max: number }): z.ZodType<string, string> => {
  const min = limits.min ?? 1;
  return z
    .string()
    .check((context) => {
      const problem = textProblem(context.value, min, limits.max);
      if (problem !== null) context.issues.push({ code: 'custom', message: problem, input: context.value });
    })
    .meta({ minLength: min, maxLength: limits.max });
};

function textProblem(value: string, min: number, max: number): string | null {
  if (!value.isWellFormed()) return 'contains a lone surrogate';
  if (controlCharacter.test(value)) return 'contains a control character';
  if (min > 0 && value.trim() === '') return 'is blank';
  const count = characters(value);
  if (count < min) return `has ${count} characters, at least ${min} are needed`;
  if (count > max) return `has ${count} characters, at most ${max} are allowed`;
  return null;
}

/** A string kept for reference only (a file name): at most `max` code points, without NUL and lone surrogates. */
export const looseText = (limits: { max: number }): z.ZodType<string, string> =>
  z
    .string()
    .check((context) => {
      const { value } = context;
      const problem = !value.isWellFormed()
        ? 'contains a lone surrogate'
        : value.includes('\0')
          ? 'contains NUL'
          : characters(value) > limits.max
            ? `is longer than ${limits.max} characters`
            : null;
      if (problem !== null) context.issues.push({ code: 'custom', message: problem, input: value });
    })
    .meta({ maxLength: limits.max });
