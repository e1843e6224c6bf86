import { Client, escapeIdentifier, escapeLiteral } from 'pg';
import { SERVICE } from './credentials.ts';

/**
 * Makes the services' role and database when they are missing. The role is an ordinary one: what a service could be
 * tricked into must not reach the server's files. Done at each start, so that an interrupted first one is completed.
 */
export async function ensureServiceDatabase(adminUrl: string, password: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const role = escapeIdentifier(SERVICE);
    const { rowCount: roles } = await client.query('select from pg_roles where rolname = $1', [SERVICE]);
    if (roles === 0) await client.query(`create role ${role} login password ${escapeLiteral(password)}`);
    const { rowCount: databases } = await client.query('select from pg_database where datname = $1', [
      SERVICE,
    ]);
    if (databases === 0) await client.query(`create database ${role} owner ${role}`);
    await client.query(`revoke connect on database ${role} from public`);
  } finally {
    await client.end();
  }
}
