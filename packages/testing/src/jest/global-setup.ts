import { migrate } from '@millrace/store';
import { Client } from 'pg';
import { type PostgresServer, startPostgres } from './postgres-server.ts';
import { adminUrlVariable, databaseUrl, templateName } from '../test-database.ts';

declare global {
  var millraceTestPostgres: PostgresServer | undefined;
}

/** Starts one real PostgreSQL for the whole run and migrates the template that test databases are copied from. */
export default async function globalSetup(): Promise<void> {
  const server = await startPostgres();
  try {
    await makeTemplate(server.adminUrl);
  } catch (error) {
    await server.stop();
    throw error;
  }
  globalThis.millraceTestPostgres = server;
  process.env[adminUrlVariable] = server.adminUrl;
}

async function makeTemplate(adminUrl: string): Promise<void> {
  const admin = new Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    await admin.query(`create database ${templateName}`);
    await migrate(databaseUrl(adminUrl, templateName));
    // Nobody may connect any more: a connection to the template would make every copy of it fail.
    await admin.query(`alter database ${templateName} with is_template true allow_connections false`);
  } finally {
    await admin.end();
  }
}
