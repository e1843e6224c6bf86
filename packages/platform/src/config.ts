import { z } from 'zod';

/** The environment does not make a configuration; the message lists every problem and no value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'invalid_config';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the configuration is not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * Reads a service's configuration from environment variables, once. A variable that is empty counts as unset;
 * variables that the schema does not name are ignored.
 * @throws {ConfigError} listing every problem
 */
export function loadConfig<S extends z.ZodObject>(
  schema: S,
  env: Readonly<Record<string, string | undefined>>,
): z.output<S> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`));
}

/** A setting that is a list: `a, b`; empty items are dropped. */
export const listText = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/** A setting that is on or off; off unless told. */
export const flagText = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');

const secretName = /SECRET|TOKEN|KEY|PASSWORD|CREDENTIAL/;

/** The configuration as the start-up log may show it: secrets by name and credentials in URLs are masked. */
export function maskConfig(config: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      value === undefined ? undefined : secretName.test(name) ? '***' : withoutCredentials(value),
    ]),
  );
}

const withoutCredentials = (value: unknown): unknown =>
  typeof value === 'string' ? value.replace(/(:\/\/)[^/@]*@/, '$1***@') : value;
