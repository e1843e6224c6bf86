import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createMemoryBus, type MemoryBus } from '@millrace/bus/memory';
import { type PlaybackConfirmationMessage, topics } from '@millrace/contract';
import { createMetrics, silentLogger } from '@millrace/platform';
import {
  addHeartbeats,
  confirmPlaybackState,
  createDatabase,
  createHoldCommands,
  type Database,
  type EffectiveHold,
  noteCdnProcess,
} from '@millrace/store';
import {
  createTestDatabase,
  seedAccount,
  type SeededAccount,
  seedProcessingVideo,
  type TestDatabase,
  waitFor,
} from '@millrace/testing';
import { readRunbooks } from '../../../../dev/prometheus/runbooks.ts';
import { consumeConfirmations } from './consume-confirmations.ts';
import { spreadHoldsLoops } from './spread.ts';

const ended = false;
let database: TestDatabase;
let store: Database;
let account: SeededAccount;
let bus: MemoryBus;
let knownAtFirst: number | null;
beforeAll(async () => {
  database = await createTestDatabase();
  store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  account = await seedAccount(store);
  bus = createMemoryBus();
  knownAtFirst = (await store.query('select 1 from cdn_processes')).rowCount;
});
afterAll(async () => {
  await bus.close();
  await store.close();
  await database.drop();
});
beforeEach(async () => {
  await store.query('delete from cdn_processes');
  await store.query('delete from heartbeats');
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
/** As if those on their way had been seen so long ago. */
const ageHolds = (seconds: number): Promise<unknown> =>
  store.query(
    `update video_holds set seen_at = clock_timestamp() - $1 * interval '1 second'
     where lifted_at is null and effective_at is null`,
    [seconds],
  );
const ageProcess = (bootId: string, seconds: number): Promise<unknown> =>
  store.query(`update cdn_processes set seen_at = now() - $2 * interval '1 second' where boot_id = $1`, [
    ...[bootId, seconds],
  ]);
/** A process that confirms whatever is placed in the next minute. */
const confirmAhead = async (bootId: string): Promise<void> => {
  const confirmedUpTo = new Date((await now()).getTime() + 60_000);
  await confirmPlaybackState(store, { bootId, confirmedUpTo, ended });
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
  it('is not proven by what was told before the clock of the record stepped back', async () => {
    const { run } = setUp();
    await place();
    await run('spread-holds');
    // As a standby finds it whose clock is 30 s behind: heartbeats went out, and were confirmed, by the other's clock.
    await store.query(`update heartbeats set latest = latest + interval '30 seconds'`);
    const { rows } = await store.query<{ latest: Date }>('select latest from heartbeats');
    const latest = rows[0]?.latest ?? new Date(NaN);
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: latest, ended });
    expect(await run('spread-holds')).toBe(1);
    await addHeartbeats(store, topics.playbackState.name, topics.playbackState.partitions);
    await place();
    expect(await run('spread-holds')).toBe(0);
    const caughtUp = new Date(latest.getTime() + 1);
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: caughtUp, ended });
    expect(await run('spread-holds')).toBe(1);
  });

  it('is proven again by the way out that the runbook has after a large jump of the clock', async () => {
    const { run } = setUp();
    // A day ahead were a heartbeat, a process that ended since, one that vanished, and when a hold was noted.
    await store.query(
      `insert into heartbeats (topic, latest) values ($1, now() + interval '1 day')
       on conflict (topic) do update set latest = excluded.latest`,
      [topics.playbackState.name],
    );
    await store.query(
      `insert into cdn_processes (boot_id, confirmed_up_to, seen_at)
       values ('ended', 'infinity', now() + interval '1 day'), ('vanished', now(), now() + interval '1 day')`,
    );
    await place();
    await run('spread-holds');
    await confirmAhead('new');
    expect(await run('spread-holds')).toBe(0);

    const { text, blocks } = readRunbooks().find(({ name }) => name === 'slow-holds') ?? {};
    const [, wayOut = ''] = text?.split('### After a jump of the clock') ?? [];
    const statements = blocks?.('sql').filter((sql) => wayOut.includes(sql)) ?? [];
    for (const sql of statements) await store.query(sql);
    const { rows } = await store.query('select boot_id from cdn_processes');
    expect(rows).toEqual([{ boot_id: 'new' }]);
    expect(await run('spread-holds')).toBe(1);
  });

  it('does not forget who is there for one that was heard of last before the clock stepped back', async () => {
    const { run } = setUp();
    await confirmPlaybackState(store, { bootId: 'behind', confirmedUpTo: await now(), ended });
    await store.query(
      `insert into cdn_processes (boot_id, confirmed_up_to, seen_at)
       values ('ended', 'infinity', now() + interval '1 day')`,
    );
    expect(await run('forget-cdn-processes')).toBe(0);
    await place();
    await ageHolds(0);
    expect(await run('spread-holds')).toBe(0);
    // Its word is waited for, and will do.
    await confirmAhead('behind');
    expect(await run('spread-holds')).toBe(1);
  });

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
    expect(effective).toMatchObject([{ videoId, source: 'admin', reference: 'admin', proof: 'confirmed' }]);
    expect(await run('spread-holds')).toBe(0);

    const text = await metrics.render();
    expect(text).toMatch(/millrace_hold_propagation_seconds_count\{.*proof="confirmed".*\} 1/);
    expect(text).toMatch(/millrace_holds_spreading\{.*\} 0/);
    const { rows } = await store.query<{ details: object }>(
      `select details from audit where subject = $1 and action = 'video.hold.effective'`,
      [videoId],
    );
    expect(rows.map(({ details }) => details)).toEqual([
      expect.objectContaining({
        source: 'admin',
        proof: 'confirmed',
        effectiveAt: effective[0]?.effectiveAt.toISOString(),
      }),
    ]);
  });

  it('is effective by time alone where no process was ever heard of', async () => {
    const { effective, metrics, run } = setUp();
    await place();
    expect(await run('spread-holds')).toBe(0);
    // What a process believes for 60 s may have been read just before.
    await ageHolds(60);
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(66);
    expect(await run('spread-holds')).toBe(1);
    expect(effective).toMatchObject([{ proof: 'waited' }]);
    expect(await metrics.render()).toMatch(/millrace_hold_propagation_seconds_count\{.*proof="waited".*\} 1/);
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

  it('waits for a silent process until others were heard of for 90 s without it, and then by time', async () => {
    const { effective, run } = setUp();
    await confirmPlaybackState(store, { bootId: 'silent', confirmedUpTo: new Date(1), ended });
    await place();
    // Nobody is heard of: that the channel is broken is as likely.
    await ageProcess('silent', 600);
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(600);
    expect(await run('spread-holds')).toBe(0);
    await confirmAhead('lively');
    await ageProcess('silent', 80);
    expect(await run('spread-holds')).toBe(0);
    await ageProcess('silent', 100);
    expect(await run('spread-holds')).toBe(1);

    // It may live, cut off from the bus, and have read the next video just before its hold.
    await place();
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(60);
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(66);
    expect(await run('spread-holds')).toBe(1);
    expect(effective.map(({ proof }) => proof)).toEqual(['waited', 'waited']);
    await confirmPlaybackState(store, { bootId: 'silent', confirmedUpTo: new Date(0), ended: true });
    await place();
    expect(await run('spread-holds')).toBe(1);
    expect(effective.at(-1)).toMatchObject({ proof: 'confirmed' });
  });

  it('is not held up for longer than 30 s by a process that ended while it started, and goes by time then', async () => {
    const { effective, run } = setUp();
    await noteCdnProcess(store, { bootId: 'stillborn', cutOff: false });
    await confirmAhead('lively');
    await place();
    await run('spread-holds');
    await ageHolds(70);
    await ageProcess('stillborn', 25);
    expect(await run('spread-holds')).toBe(0);
    await ageProcess('stillborn', 35);
    expect(await run('spread-holds')).toBe(1);
    await place();
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(66);
    expect(await run('spread-holds')).toBe(1);
    expect(effective.map(({ proof }) => proof)).toEqual(['waited', 'waited']);
  });

  it('goes by time alone while a process says that it is cut off, and by its word when it is back', async () => {
    const { effective, run } = setUp();
    await confirmAhead('lively');
    await confirmPlaybackState(store, { bootId: 'cut', confirmedUpTo: new Date(1), ended });
    await noteCdnProcess(store, { bootId: 'cut', cutOff: true });
    await place();
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(66);
    expect(await run('spread-holds')).toBe(1);

    await confirmAhead('cut');
    await place();
    expect(await run('spread-holds')).toBe(1);
    expect(effective.map(({ proof }) => proof)).toEqual(['waited', 'confirmed']);
    await confirmPlaybackState(store, { bootId: 'cut', confirmedUpTo: new Date(0), ended: true });
    // A late word does not bring it back.
    await noteCdnProcess(store, { bootId: 'cut', cutOff: true });
    await place();
    expect(await run('spread-holds')).toBe(1);
    expect(effective.at(-1)).toMatchObject({ proof: 'confirmed' });
  });

  it('goes by time too after an upgrade from a release whose processes do not confirm', async () => {
    const { effective, run } = setUp();
    const migrations = new URL('../../../../packages/store/migrations/', import.meta.url);
    await seedProcessingVideo(store, account);
    await store.query(await readFile(new URL('000034_cdn_before.sql', migrations), 'utf8'));
    await confirmAhead('lively');
    await place();
    expect(await run('spread-holds')).toBe(0);
    await ageHolds(66);
    expect(await run('spread-holds')).toBe(1);
    expect(effective).toMatchObject([{ proof: 'waited' }]);
    // Where there were no videos, nobody served any.
    expect(knownAtFirst).toBe(0);
  });

  it('goes by the newest word of a process, in whatever order they come, and forgets those long gone', async () => {
    const { run } = setUp();
    await confirmAhead('one');
    await confirmPlaybackState(store, { bootId: 'one', confirmedUpTo: new Date(0), ended });
    await store.query(
      `insert into cdn_processes (boot_id, confirmed_up_to, seen_at)
       values ('gone', now(), now() - interval '2 hours')`,
    );
    expect(await run('forget-cdn-processes')).toBe(1);
    await place();
    expect(await run('spread-holds')).toBe(1);
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
