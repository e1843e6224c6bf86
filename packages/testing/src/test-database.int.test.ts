import { describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { createTestDatabase } from './test-database.ts';

describe('createTestDatabase', () => {
  it('gives each caller a database of its own on PostgreSQL 18', async () => {
    const [first, second] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    const client = new Client({ connectionString: first.connectionString });
    const other = new Client({ connectionString: second.connectionString });
    await Promise.all([client.connect(), other.connect()]);
    try {
      await client.query('create table only_here (id int)');
      const version = await client.query<{ server_version: string }>('show server_version');
      expect(version.rows[0]?.server_version).toMatch(/^18\./);
      await expect(other.query('select * from only_here')).rejects.toThrow('does not exist');
    } finally {
      await Promise.all([client.end(), other.end()]);
      await Promise.all([first.drop(), second.drop()]);
    }
  });

  it('drops the database though somebody is still connected', async () => {
    const database = await createTestDatabase();
    const client = new Client({ connectionString: database.connectionString });
    await client.connect();
    const ended = new Promise<Error>((resolve) => client.on('error', resolve));
    await database.drop();
    expect((await ended).message).toMatch(/terminat/i);
    const again = new Client({ connectionString: database.connectionString });
    await expect(again.connect()).rejects.toThrow('does not exist');
  });
});
