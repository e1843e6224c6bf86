import { describe } from '@jest/globals';

/**
 * Registers tests that need a real server of another project. Where it cannot be had they are skipped, and their name
 * says what is missing; in CI they run all the same, and fail.
 *
 * @param missing what the machine lacks, or null
 */
export function describeWith(missing: string | null, name: string, define: () => void): void {
  if (missing === null || process.env['CI'] === 'true') describe(name, define);
  else describe.skip(`${name} (skipped, for want of this: ${missing})`, define);
}
