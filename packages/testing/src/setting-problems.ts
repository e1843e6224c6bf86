import { ConfigError, loadConfig } from '@millrace/platform';
import { type z } from 'zod';

/** The names of the settings that a configuration refuses, sorted; none when it takes them all. */
export function settingProblems(schema: z.ZodObject, env: Readonly<Record<string, string>>): string[] {
  try {
    loadConfig(schema, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [...new Set(error.problems.map((problem) => problem.split(':')[0] ?? ''))].sort();
  }
}
