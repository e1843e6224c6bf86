import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { createTestDatabase } from '@millrace/testing';
import { readRunbooks } from './runbooks.ts';

const statements = readRunbooks().flatMap((page) =>
  page.blocks('sql').map((sql, index) => [`${page.name} ${index + 1}`, sql] as const),
);

describe('statements of runbooks', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  it.each(statements)('%s runs', async (_name, sql) => {
    await expect(store.query(sql)).resolves.toBeDefined();
  });
});
