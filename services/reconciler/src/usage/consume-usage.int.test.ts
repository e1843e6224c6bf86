import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type OutgoingMessage } from '@millrace/bus';
import { createMemoryBus } from '@millrace/bus/memory';
import { deadTopic, topics } from '@millrace/contract';
import { createMetrics, systemClock } from '@millrace/platform';
import { createDatabase, type Database } from '@millrace/store';
import { captureLogger, createTestDatabase, waitFor } from '@millrace/testing';
import { consumeUsage } from './consume-usage.ts';

type JsonValue = OutgoingMessage['value'];

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let store: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: captureLogger().logger });
  await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
    values ('acc_1', 'A', 'free', 1, now(), now())`);
});
afterAll(async () => {
  await store.close();
  await database.drop();
});

describe('consuming watched time', () => {
  it('counts it on any number of replicas, repeated and after what cannot be read', async () => {
    const { logger, lines } = captureLogger();
    const bus = createMemoryBus({ clock: systemClock });
    const metrics = createMetrics({ service: 'reconciler' });
    const replicas = await Promise.all(
      [1, 2].map((n) =>
        consumeUsage({
          bus,
          store,
          logger,
          metrics: n === 1 ? metrics : createMetrics({ service: 'other' }),
        }),
      ),
    );
    const message = (accountId: string, ...indexes: number[]): JsonValue => ({
      ...{ v: 1, bootId: 'b', sequence: 0, accountId },
      views: [
        {
          ...{ tokenHash: 't', ipHash: 'i', videoId: 'vid_1', at: new Date().toISOString() },
          segments: indexes.map((index) => ({ index, ms: 1_000 })),
        },
      ],
    });
    const publish = (value: JsonValue, key = 'acc_1'): Promise<void> =>
      bus.publish([{ topic: topics.playbackUsage.name, key, value }]);
    try {
      await publish(message('acc_1', 0, 1));
      await publish(message('acc_1', 0, 1));
      await publish({ v: 99 });
      await publish(message('acc_unknown', 5), 'acc_unknown');
      await publish(message('acc_1', 2));
      const watched = async (): Promise<number | undefined> =>
        (await store.query<{ ms: number }>(`select watched_ms as ms from usage where account_id = 'acc_1'`))
          .rows[0]?.ms;
      await waitFor(async () => (await watched()) === 3_000);
      await waitFor(() => lines.some(({ message: text }) => text.includes('unknown account')));
      expect(await watched()).toBe(3_000);
    } finally {
      await Promise.all(replicas.map((replica) => replica.close()));
    }
  });

  it('goes on after what the record cannot hold', async () => {
    const { logger } = captureLogger();
    const bus = createMemoryBus({ clock: systemClock });
    const metrics = createMetrics({ service: 'reconciler' });
    const replica = await consumeUsage({ bus, store, logger, metrics });
    const topic = topics.playbackUsage.name;
    const usage = (tokenHash: string, ms: number): JsonValue => ({
      ...{ v: 1, bootId: 'b', sequence: 0, accountId: 'acc_2' },
      views: [
        {
          tokenHash,
          ipHash: 'i',
          videoId: 'vid',
          at: new Date().toISOString(),
          segments: [{ index: 0, ms }],
        },
      ],
    });
    await store.query(`insert into accounts (id, name, plan_id, anchor_day, created_at, updated_at)
      values ('acc_2', 'B', 'free', 1, now(), now())`);
    const watched = async (): Promise<number | undefined> =>
      (await store.query<{ ms: number }>(`select watched_ms as ms from usage where account_id = 'acc_2'`))
        .rows[0]?.ms;
    try {
      const publish = (value: JsonValue): Promise<void> => bus.publish([{ topic, key: 'acc_2', value }]);
      for (const value of [usage('a\0', 1), usage('b', 1e300), usage('c'.repeat(1e5), 1), usage('d', 1_000)])
        await publish(value);
      await waitFor(async () => (await watched()) === 1_000);

      // A body that is well, to all that is known of it.
      await store.query(`alter table playback_views
        add constraint by_zero check (1 / (length(token_hash) - 5) is not null) not valid`);
      await publish(usage('fives', 2_000));
      await waitFor(() => bus.read(deadTopic(topic)).length === 4);
      expect(bus.read(deadTopic(topic)).at(-1)?.headers['millrace-dead-reason']).toMatch('division by zero');
    } finally {
      await store.query('alter table playback_views drop constraint if exists by_zero');
      await replica.close();
    }
  });
});
