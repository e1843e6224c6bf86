import { connect, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { probePort } from '@millrace/platform';
import { createTestDatabase, type TestDatabase } from '@millrace/testing';
import { Client } from 'pg';
import { migrate } from './migrate.ts';

const name = '000018_plan_estimate.sql';

describe('migrate', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: database.connectionString });
    await client.connect();
    return work(client).finally(() => client.end());
  }
  /** As if that one had never been applied. */
  const forget = (): Promise<unknown> =>
    withClient((client) =>
      client.query('drop statistics accounts_limiting_plan; delete from migrations where number = 18'),
    );

  it('gives way to who holds a lock that it needs, and tries again', async () => {
    await forget();
    await withClient(async (holder) => {
      await holder.query('begin; lock table accounts in access exclusive mode');
      const reasons: Error[] = [];
      const onWait = (reason: Error): void => {
        reasons.push(reason);
        void holder.query('commit');
      };
      const applied = await migrate(database.connectionString, { lockTimeoutMs: 50, onWait });
      expect(applied).toEqual([name]);
      expect(reasons.map((reason) => (reason as { code?: string }).code)).toEqual(['55P03']);
    });
    expect(await migrate(database.connectionString)).toEqual([]);
  });

  it('applies each migration once, however many processes begin at once', async () => {
    await forget();
    const applied = await Promise.all([1, 2, 3].map(() => migrate(database.connectionString)));
    expect(applied.flat()).toEqual([name]);
  });

  it('waits for a database that is not there yet, for as long as it is told', async () => {
    const url = new URL(database.connectionString);
    const there = { host: url.hostname, port: Number(url.port) };
    url.port = String(await probePort('127.0.0.1'));
    url.hostname = '127.0.0.1';
    await expect(migrate(url.href)).rejects.toThrow('ECONNREFUSED');
    let server: Server | undefined;
    const onWait = (): void => {
      server ??= createServer((socket) => {
        const other = connect(there);
        socket.on('error', () => undefined);
        socket.pipe(other).pipe(socket);
      }).listen(Number(url.port), url.hostname);
    };
    expect(await migrate(url.href, { waitMs: 60_000, onWait })).toEqual([]);
    expect(server).toBeDefined();
    server?.close();
  });

  it('does not wait for a database that refuses it', async () => {
    const url = new URL(database.connectionString);
    url.pathname = '/there_is_none';
    const onWait = (): void => {
      throw new Error('waits');
    };
    await expect(migrate(url.href, { waitMs: 60_000, onWait })).rejects.toThrow('does not exist');
  });
});
