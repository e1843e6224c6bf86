import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@millrace/bus/memory';
import { type PlaybackConfirmationMessage, topics } from '@millrace/contract';
import { createMetrics, silentLogger } from '@millrace/platform';
import {
  confirmPlaybackState,
  createDatabase,
  createHoldCommands,
  type Database,
  type EffectiveHold,
} from '@millrace/store';
import {
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
  waitFor,
} from '@millrace/testing';
import { consumeConfirmations } from './consume-confirmations.ts';
import { spreadHoldsLoops } from './spread.ts';

const ended = false;
let database: TestDatabase;
let store: Database;
let account: SeededAccount;
let bus: MemoryBus;
beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  account = await seedAccount(store);
  bus = createMemoryBus();
});
afterAll(async () => {
  await bus.close();
  await store.close();
  await database.drop();
});
beforeEach(async () => {
  await store.query('delete from cdn_processes');
  await store.query(`delete from outbox where key = 'heartbeat'`);
  await store.query('update video_holds set lifted_at = now()');
});

/** The loops, and what became effective by them. */
function setUp() {
  const effective: EffectiveHold[] = [];
  const metrics = createMetrics({ service: 'reconciler' });
  const loops = spreadHoldsLoops({ store, bus, metrics, onEffective: (hold) => effective.push(hold) });
  const run = async (name: string): Promise<number> => {
    const loop = loops.find((each) => each.name === name);
    return (await loop?.run(new AbortController().signal)) ?? NaN;
  };
  return { effective, metrics, run };
}
const place = async (): Promise<string> => {
  const videoId = await seedProcessingVideo(store, account);
  const hold = { videoId, source: 'admin', reference: 'admin', reason: null, legal: false } as const;
  await createHoldCommands(store).place(hold, 'admin');
  return videoId;
};
const now = async (): Promise<Date> => {
  const { rows } = await store.query<{ now: Date }>('select clock_timestamp() as now');
  return rows[0]?.now ?? new Date(NaN);
};
const heartbeats = async (): Promise<Date[]> => {
  const { rows } = await store.query<{ at: string }>(
    `select value ->> 'at' as at from outbox where key = 'heartbeat'`,
  );
  return rows.map(({ at }) => new Date(at));
};

describe('a hold on its way', () => {
  it('is effective when the last process has read a heartbeat that is younger', async () => {
    const { effective, metrics, run } = setUp();
    const before = await now();
    for (const bootId of ['one', 'two'])
      await confirmPlaybackState(store, { bootId, confirmedUpTo: before, ended });
    const videoId = await place();
    expect(await run('spread-holds')).toBe(0);
    const beats = await heartbeats();
    expect(beats).toHaveLength(topics.playbackState.partitions);
    expect(Math.min(...beats.map(Number))).toBeGreaterThan(before.getTime());

    const later = await now();
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: later, ended });
    expect(await run('spread-holds')).toBe(0);
    await confirmPlaybackState(store, { bootId: 'two', confirmedUpTo: later, ended });
    expect(await run('spread-holds')).toBe(1);
    expect(effective).toMatchObject([{ videoId, source: 'admin', reference: 'admin' }]);
    expect(await run('spread-holds')).toBe(0);

    const text = await metrics.render();
    expect(text).toMatch(/millrace_hold_propagation_seconds_count\{.*\} 1/);
    expect(text).toMatch(/millrace_holds_spreading\{.*\} 0/);
    const { rows } = await store.query<{ details: object }>(
      `select details from audit where subject = $1 and action = 'video.hold.effective'`,
      [videoId],
    );
    expect(rows.map(({ details }) => details)).toEqual([
      expect.objectContaining({ source: 'admin', effectiveAt: effective[0]?.effectiveAt.toISOString() }),
    ]);
  });

  it('is effective at once where there is no process', async () => {
    const { run } = setUp();
    await place();
    expect(await run('spread-holds')).toBe(1);
  });

  it('waits for a process that has just begun, and not for one that said it is gone', async () => {
    const { run } = setUp();
    await confirmPlaybackState(store, { bootId: 'new', confirmedUpTo: new Date(0), ended });
    await place();
    expect(await run('spread-holds')).toBe(0);
    await confirmPlaybackState(store, { bootId: 'new', confirmedUpTo: new Date(0), ended: true });
    await confirmPlaybackState(store, { bootId: 'new', confirmedUpTo: new Date(0), ended });
    expect(await run('spread-holds')).toBe(1);
  });

  it('waits for a silent process until others were heard of for 90 s without it', async () => {
    const { run } = setUp();
    await confirmPlaybackState(store, { bootId: 'silent', confirmedUpTo: new Date(0), ended });
    await place();
    const age = (bootId: string, seconds: number): Promise<unknown> =>
      store.query(`update cdn_processes set seen_at = now() - $2 * interval '1 second' where boot_id = $1`, [
        bootId,
        seconds,
      ]);
    // Nobody is heard of: that the channel is broken is as likely.
    await age('silent', 600);
    expect(await run('spread-holds')).toBe(0);
    const later = new Date((await now()).getTime() + 60_000);
    await confirmPlaybackState(store, { bootId: 'lively', confirmedUpTo: later, ended });
    await age('silent', 80);
    expect(await run('spread-holds')).toBe(0);
    await age('silent', 100);
    expect(await run('spread-holds')).toBe(1);
  });

  it('goes by the newest word of a process, in whatever order they come, and forgets those long gone', async () => {
    const { run } = setUp();
    const later = new Date((await now()).getTime() + 60_000);
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: later, ended });
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: new Date(0), ended });
    await store.query(
      `insert into cdn_processes (boot_id, confirmed_up_to, seen_at)
       values ('gone', now(), now() - interval '2 hours')`,
    );
    await place();
    expect(await run('spread-holds')).toBe(1);
    expect(await run('forget-cdn-processes')).toBe(1);
    expect((await store.query('select boot_id from cdn_processes')).rows).toEqual([{ boot_id: 'one' }]);
  });

  it('hears of processes by the bus', async () => {
    const metrics = createMetrics({ service: 'reconciler' });
    const subscription = await consumeConfirmations({ bus, store, logger: silentLogger, metrics });
    const message: PlaybackConfirmationMessage = {
      ...{ v: 1, bootId: 'afar', confirmedUpTo: '2030-01-01T00:00:00.123Z' },
    };
    await bus.publish([{ topic: topics.playbackConfirmations.name, key: 'afar', value: message }]);
    const told = await waitFor(async () => {
      const { rows } = await store.query<{ at: Date }>(
        `select confirmed_up_to as at from cdn_processes where boot_id = 'afar'`,
      );
      return rows[0]?.at;
    });
    expect(told.toISOString()).toBe(message.confirmedUpTo);
    await subscription.close();
  });
});
