import { randomUUID } from 'node:crypto';
import { silentLogger } from '@millrace/platform';
import { createTestDatabase } from '@millrace/testing';
import { busConformance, type ConformanceWorld } from '../conformance.ts';
import { createCuttableProxy } from '../testing/cuttable-proxy.ts';
import { createPostgresBus } from './postgres-bus.ts';

const times = { leaseMs: 3_000, sweepMs: 200, handoverMs: 10_000 };

async function postgresWorld(): Promise<ConformanceWorld> {
  const database = await createTestDatabase();
  const open = (connectionString: string): ReturnType<typeof createPostgresBus> =>
    createPostgresBus({ connectionString, bootId: randomUUID(), logger: silentLogger, times });
  const admin = open(database.connectionString);
  const proxies: { close(): Promise<void> }[] = [];
  let topics = 0;
  return {
    createTopic: async (partitions) => {
      topics += 1;
      const name = `conformance.${topics}`;
      await admin.ensureTopics({ [name]: partitions, [`${name}.dead`]: partitions });
      return name;
    },
    member: async () => {
      const proxy = await createCuttableProxy(database.connectionString);
      proxies.push(proxy);
      return { bus: open(proxy.url), kill: async () => proxy.cut() };
    },
    teardown: async () => {
      await admin.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await database.drop();
    },
  };
}

busConformance('the log in PostgreSQL', postgresWorld);
