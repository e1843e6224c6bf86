import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { BusUnavailableError } from '@millrace/bus';
import { createKafkaBus, type KafkaBus } from '@millrace/bus/kafka';
import { topics } from '@millrace/contract';
import { silentLogger, systemClock } from '@millrace/platform';
import { acquireLease, addToOutbox, createDatabase, type Database } from '@millrace/store';
import { createTestDatabase, waitFor } from '@millrace/testing';
import { type KafkaBroker, startKafkaBroker } from '../../../../dev/kafka/broker.ts';
import { missingForKafka } from '../../../../dev/kafka/jars.ts';
import { describeWith } from '../../../../dev/real-part.ts';
import { relayOutbox } from './relay.ts';

const topic = topics.encodeTasks.name;
const lease = 'reconciler';

jest.setTimeout(120_000);

describeWith(missingForKafka(), 'the outbox before Kafka', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let epoch: number;
  let broker: KafkaBroker;
  let bus: KafkaBus;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    epoch = (await acquireLease(store, { name: lease, holder: 'test', ttlMs: 600_000 })) ?? 0;
    broker = await startKafkaBroker();
    const connection = { brokers: [broker.address], clientId: 'test' };
    bus = createKafkaBus({ connection, logger: silentLogger, times: { requestMs: 3_000, fetchMs: 100 } });
    await bus.ensureTopics();
  });
  afterAll(async () => {
    await bus.close();
    await broker.stop();
    await store.close();
    await database.drop();
  });

  const relay = (): Promise<number> =>
    relayOutbox(
      {
        ...{ store, bus, clock: systemClock, logger: silentLogger },
        onPublished: () => undefined,
        onParked: () => undefined,
      },
      { lease, epoch },
      new AbortController().signal,
    );
  const waiting = async (): Promise<number> =>
    Number(
      (await store.query<{ count: string }>('select count(*) from outbox where parked_at is null')).rows[0]
        ?.count,
    );

  it('keeps what is committed while the broker is down, and hands it over once it is back', async () => {
    await broker.kill();
    const ids = ['tsk_1', 'tsk_2', 'tsk_3'];
    await store.transaction((tx) =>
      addToOutbox(
        tx,
        ids.map((taskId, version) => ({
          topic,
          key: 'tsk',
          version,
          value: { v: 1, taskId, kind: 'probe' },
        })),
      ),
    );
    for (let sweep = 0; sweep < 6; sweep++) await expect(relay()).rejects.toThrow(BusUnavailableError);
    expect(await waiting()).toBe(3);

    await broker.start();
    await waitFor(async () => (await relay()) === 3, { timeoutMs: 45_000 });
    expect(await waiting()).toBe(0);
    const seen: unknown[] = [];
    await bus.subscribe('encoder', topic, ({ value }) => {
      seen.push((JSON.parse(value) as { taskId: string }).taskId);
      return Promise.resolve();
    });
    await waitFor(() => seen.length >= 3, { timeoutMs: 45_000 });
    expect([...new Set(seen)]).toEqual(ids);
  });
});
