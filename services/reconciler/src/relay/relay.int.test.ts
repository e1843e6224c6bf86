import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusRequestError, BusUnavailableError, type OutgoingMessage } from '@millrace/bus';
import { topics } from '@millrace/contract';
import { silentLogger, systemClock } from '@millrace/platform';
import { acquireLease, addHeartbeats, addToOutbox, createDatabase, type Database } from '@millrace/store';
import { createTestDatabase } from '@millrace/testing';
import { relayOutbox, type RelayDeps } from './relay.ts';

const topic = topics.playbackState.name;
const lease = 'reconciler';

describe('outbox relay', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let epoch: number;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
    epoch = (await acquireLease(store, { name: lease, holder: 'test', ttlMs: 600_000 })) ?? 0;
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });
  beforeEach(() => store.query('delete from outbox'));

  const add = (keys: readonly string[]): Promise<void> =>
    store.transaction((tx) =>
      addToOutbox(
        tx,
        keys.map((key, version) => ({
          topic,
          key,
          version,
          value: { key, version },
          headers: { traceparent: key },
        })),
      ),
    );

  /** A bus that keeps what it takes, or refuses as told. */
  function recordingBus(refuse: (message: OutgoingMessage) => Error | null = () => null) {
    const taken: OutgoingMessage[] = [];
    const parked: string[] = [];
    const deps: RelayDeps = {
      store,
      clock: systemClock,
      logger: silentLogger,
      onPublished: () => undefined,
      onParked: (row) => parked.push(row.key),
      bus: {
        publish: async (batch: readonly OutgoingMessage[]) => {
          const error = batch.map(refuse).find((refusal) => refusal !== null);
          if (error) throw error;
          taken.push(...batch);
        },
      } as Bus,
    };
    const relay = (at = epoch): Promise<number> =>
      relayOutbox(deps, { lease, epoch: at }, new AbortController().signal);
    return { taken, parked, relay };
  }
  const waiting = async (): Promise<string[]> =>
    (
      await store.query<{ key: string }>('select key from outbox where parked_at is null order by id')
    ).rows.map((row) => row.key);

  it('publishes in order, with headers, and deletes what was taken', async () => {
    await add(['a', 'b', 'a']);
    const bus = recordingBus();
    expect(await bus.relay()).toBe(3);
    expect(bus.taken).toEqual([
      { topic, key: 'a', value: { key: 'a', version: 0 }, headers: { traceparent: 'a' } },
      { topic, key: 'b', value: { key: 'b', version: 1 }, headers: { traceparent: 'b' } },
      { topic, key: 'a', value: { key: 'a', version: 2 }, headers: { traceparent: 'a' } },
    ]);
    expect(await waiting()).toEqual([]);
  });

  it('goes on over many batches until the outbox is empty', async () => {
    await add(Array.from({ length: 1_234 }, (_, i) => `k${i}`));
    const bus = recordingBus();
    expect(await bus.relay()).toBe(1_234);
    expect(bus.taken.map((message) => message.key)).toEqual(Array.from({ length: 1_234 }, (_, i) => `k${i}`));
  });

  it('publishes a heartbeat after everything that was committed before it', async () => {
    await addHeartbeats(store, topic, 2);
    await add(['late-id']);
    const bus = recordingBus();
    await bus.relay();
    expect(bus.taken.map((message) => [message.key, message.partition])).toEqual([
      ['late-id', undefined],
      ['heartbeat', 0],
      ['heartbeat', 1],
    ]);
  });

  it('holds a heartbeat back while more rows wait than one batch takes', async () => {
    await addHeartbeats(store, topic, 1);
    await add(Array.from({ length: 700 }, (_, i) => `k${i}`));
    const bus = recordingBus();
    await bus.relay();
    expect(bus.taken.at(-1)?.key).toBe('heartbeat');
    expect(bus.taken).toHaveLength(701);
  });

  it('adds no heartbeat while one waits, nor while a message of the topic is parked', async () => {
    expect(await addHeartbeats(store, topic, 4)).toBe(4);
    expect(await addHeartbeats(store, topic, 4)).toBe(0);
    await store.query('delete from outbox');
    await add(['parked']);
    await store.query('update outbox set parked_at = now()');
    expect(await addHeartbeats(store, topic, 4)).toBe(0);
  });

  it('keeps everything when the bus is down', async () => {
    await add(['a', 'b']);
    const bus = recordingBus(() => new BusUnavailableError('down'));
    await expect(bus.relay()).rejects.toThrow('down');
    expect(await waiting()).toEqual(['a', 'b']);
  });

  it('parks a row that is refused five times, and holds nobody else up', async () => {
    await add(['good', 'bad', 'fine']);
    const bus = recordingBus((message) =>
      message.key === 'bad' ? new BusRequestError('message_too_large', 'too large') : null,
    );
    await bus.relay();
    expect(bus.taken.map((message) => message.key)).toEqual(['good', 'fine']);
    for (let refusal = 2; refusal <= 4; refusal++) await bus.relay();
    expect(await waiting()).toEqual(['bad']);
    expect(bus.parked).toEqual([]);
    await bus.relay();
    expect(await waiting()).toEqual([]);
    expect(bus.parked).toEqual(['bad']);
    const { rows } = await store.query<{ error: string }>('select last_error as error from outbox');
    expect(rows).toEqual([{ error: 'too large' }]);
  });

  it('sends no heartbeat past a row that is refused, parked or not', async () => {
    await add(['bad', 'good']);
    let refuses = true;
    const bus = recordingBus((message) =>
      refuses && message.key === 'bad' ? new BusRequestError('message_too_large', 'too large') : null,
    );
    await addHeartbeats(store, topic, 2);
    for (let sweep = 1; sweep <= 6; sweep++) {
      await bus.relay();
      expect(await addHeartbeats(store, topic, 2)).toBe(0);
    }
    expect([bus.parked, bus.taken.map(({ key }) => key)]).toEqual([['bad'], ['good']]);

    // As its runbook says.
    await store.query('update outbox set parked_at = null, attempts = 0 where parked_at is not null');
    refuses = false;
    await addHeartbeats(store, topic, 2);
    await bus.relay();
    expect(bus.taken.map(({ key }) => key)).toEqual(['good', 'bad', 'heartbeat', 'heartbeat']);
  });

  it('withdraws a heartbeat that waits while a row is refused', async () => {
    await add(['bad']);
    const bus = recordingBus(() => new BusRequestError('message_too_large', 'too large'));
    for (let sweep = 1; sweep <= 4; sweep++) await bus.relay();
    await store.query(
      `insert into outbox (topic, key, version, partition, value) values ($1, 'heartbeat', 0, 0, '{}')`,
      [topic],
    );
    await bus.relay();
    expect(bus.parked).toEqual(['bad']);
    expect(await waiting()).toEqual([]);
  });

  it('deletes nothing for a leader of an older epoch', async () => {
    await add(['a']);
    const bus = recordingBus();
    await bus.relay(epoch - 1);
    expect(await waiting()).toEqual(['a']);
  });
});
