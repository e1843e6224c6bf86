import { afterAll, beforeAll, describe } from '@jest/globals';
import { type ObjectStoreHarness } from './harness.ts';
import { objectTests } from './objects.ts';
import { uploadTests } from './uploads.ts';

export { type ObjectStoreHarness } from './harness.ts';

/**
 * Registers the tests of everything that `ObjectStore` promises. `make` gives an adapter with a small page size
 * and the server of its part URLs running; the store need not be empty.
 */
export function objectStoreConformance(name: string, make: () => Promise<ObjectStoreHarness>): void {
  describe(`${name} as an object store`, () => {
    let harness: ObjectStoreHarness | undefined;
    const current = (): ObjectStoreHarness => {
      if (!harness) throw new Error('the store was not made');
      return harness;
    };
    // The server of an adapter may have to be built first.
    beforeAll(async () => {
      harness = await make();
    }, 900_000);
    afterAll(() => harness?.close());
    objectTests(current);
    uploadTests(current);
  });
}
