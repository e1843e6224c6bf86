import globalSetup from '../../packages/testing/src/jest/global-setup.ts';
import globalTeardown from '../../packages/testing/src/jest/global-teardown.ts';

/** One PostgreSQL for all the runs within: jest would start and end another one for every mutant. */
export async function withDatabase<T>(run: () => Promise<T>): Promise<T> {
  await globalSetup();
  try {
    return await run();
  } finally {
    await globalTeardown();
  }
}
