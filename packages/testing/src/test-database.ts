import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

/** The environment variable by which the run's set-up tells its workers the server's superuser URL. */
export const adminUrlVariable = 'MILLRACE_TEST_POSTGRES';
/** The migrated database that every test database is a copy of. */
export const templateName = 'millrace_template';

export interface TestDatabase {
  connectionString: string;
  /** Drops the database; connections that are still open are ended. */
  drop(): Promise<void>;
}

/** A fresh, migrated database of the run's real PostgreSQL; make one per test file and drop it after. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = process.env[adminUrlVariable];
  if (adminUrl === undefined) {
    throw new Error(`${adminUrlVariable} is not set: only integration tests (*.int.test.ts) have a database`);
  }
  const name = `test_${randomBytes(8).toString('hex')}`;
  await asAdmin(adminUrl, `create database ${name} template ${templateName}`);
  return {
    connectionString: databaseUrl(adminUrl, name),
    drop: () => asAdmin(adminUrl, `drop database if exists ${name} with (force)`),
  };
}

/** The same server and user, another database. */
export function databaseUrl(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
