import { afterAll, beforeAll } from '@jest/globals';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase, type TestDatabase } from '@millrace/testing';
import { createDatabase, type Database } from '../index.ts';

/** The record of the suite that called `useDatabase`, from its first test on. */
export let db: Database;

/** Gives a suite a record of its own, which is gone when it ends. */
export function useDatabase(): void {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    db = createDatabase({ connectionString: database.connectionString, logger: silentLogger, max: 16 });
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });
}

/** The first row. @throws Error when there is none */
export async function one<Row extends object>(sql: string, values: unknown[] = []): Promise<Row> {
  const { rows } = await db.query<Row>(sql, values);
  const row = rows[0];
  if (row === undefined) throw new Error(`no row: ${sql}`);
  return row;
}

/** The column `it` of every row. */
export const column = async (sql: string, values: unknown[] = []): Promise<unknown[]> =>
  (await db.query<{ it: unknown }>(sql, values)).rows.map((row) => row.it);
