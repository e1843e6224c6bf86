import { objectStoreConformance } from '../conformance/index.ts';
import { createTestStore } from './test-store.ts';

const pageSize = 3;

objectStoreConformance('the folder', async () => {
  const { store, close } = await createTestStore({ pageSize });
  return { store, pageSize, close };
});
