import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus } from '@millrace/bus';
import { type ObjectStore } from '@millrace/objects';
import { createMetrics, createTxtLookup, silentLogger, systemClock } from '@millrace/platform';
import { createDatabase, type Database, deleteEndpoint, fanOutEvent } from '@millrace/store';
import { createTestDatabase, seedAccount, type SeededAccount } from '@millrace/testing';
import { allLoops } from './all.ts';

describe('the loops of webhooks', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>;
  let store: Database;
  let account: SeededAccount;
  beforeAll(async () => {
    database = await createTestDatabase();
    store = createDatabase({ connectionString: database.connectionString, logger: silentLogger });
  });
  beforeEach(async () => {
    account = await seedAccount(store);
    await store.query('delete from webhook_fan_outs');
  });
  afterAll(async () => {
    await store.close();
    await database.drop();
  });

  const run = async (name: string): Promise<number> => {
    // These need nothing but the record.
    const metrics = createMetrics({ service: 'reconciler' });
    const others = {
      bus: {} as Bus,
      objects: {} as ObjectStore,
      clock: systemClock,
      logger: silentLogger,
      metrics,
      txt: createTxtLookup(),
      onEffective: () => undefined,
    };
    const loop = allLoops({ store, ...others }).find((each) => each.name === name);
    if (loop === undefined) throw new Error(`there is no loop ${name}`);
    return loop.run(new AbortController().signal);
  };
  const seedEndpoint = async (endpointId: string): Promise<void> => {
    await store.query(
      `insert into webhook_endpoints (id, project_id, url, events, secret, created_at)
       values ($1, $2, 'https://hooks.example.com/', '{video.ready}', 's', now())`,
      [endpointId, account.projectId],
    );
  };
  /** Events of an age, as moves of videos wrote them then. */
  const seedEvents = async (
    name: string,
    count: number,
    age: string,
    type = 'video.ready',
  ): Promise<void> => {
    const { accountId, projectId } = account;
    await store.query(
      `insert into events (id, type, account_id, project_id, body, created_at)
       select 'evt_' || $1 || n, $6, $2, $3, '{}', now() - $5::interval from generate_series(1, $4) n`,
      [name, accountId, projectId, count, age, type],
    );
    await store.query(
      `update webhook_fan_outs set since = now() - $2::interval where event_id like 'evt_' || $1 || '%'`,
      [name, age],
    );
  };
  /** An endpoint for which `count` events of an age wait. */
  const seed = async (endpointId: string, count: number, age: string): Promise<void> => {
    await seedEndpoint(endpointId);
    await seedEvents(endpointId, count, age);
    await store.query(
      `insert into webhook_deliveries (id, endpoint_id, event_id, created_at, next_attempt_at)
       select 'del_' || $1 || n, $1, 'evt_' || $1 || n, now() - $3::interval, now() from generate_series(1, $2) n`,
      [endpointId, count, age],
    );
  };
  const deliveries = async (endpointId: string): Promise<unknown[]> => {
    const { rows } = await store.query(
      `select status, count(*) from webhook_deliveries where endpoint_id = $1 group by status order by status`,
      [endpointId],
    );
    return rows;
  };

  it('fan out what has waited for so long that its message is lost, to who is there still, once', async () => {
    await seedEndpoint('whe_stays');
    await seedEndpoint('whe_goes');
    await seedEvents('lost', 2, '5 minutes');
    await seedEvents('taken', 1, '5 minutes');
    await seedEvents('old', 1, '29 days');
    await seedEvents('young', 1, '90 seconds');
    await store.transaction((tx) => fanOutEvent(tx, 'evt_taken1'));
    await store.transaction((tx) =>
      deleteEndpoint(tx, { projectId: account.projectId, endpointId: 'whe_goes' }),
    );
    await seedEvents('nowhere', 1, '5 minutes', 'video.held');
    expect(await run('fan-out-events')).toBe(3);
    const { rows } = await store.query<{ place: string }>(
      `select event_id || ' ' || endpoint_id as place from webhook_queue
       where endpoint_id in ('whe_stays', 'whe_goes') order by 1`,
    );
    expect(rows.map(({ place }) => place)).toEqual(
      ['lost1', 'lost2', 'old1', 'taken1'].map((event) => `evt_${event} whe_stays`),
    );
    expect(await run('fan-out-events')).toBe(0);
    await store.transaction((tx) =>
      deleteEndpoint(tx, { projectId: account.projectId, endpointId: 'whe_stays' }),
    );
    await store.query(`update webhook_fan_outs set since = since - interval '1 hour'`);
    // Nobody is left to tell: looked at once.
    expect([await run('fan-out-events'), await run('fan-out-events')]).toEqual([1, 0]);
  });

  it('fail the rest of what waited for a deleted endpoint, and touch no other [WHD-104]', async () => {
    await seed('whe_gone', 10_003, '1 minute');
    await seed('whe_here', 1, '1 minute');
    await store.transaction((tx) =>
      deleteEndpoint(tx, { projectId: account.projectId, endpointId: 'whe_gone' }),
    );
    expect(await deliveries('whe_gone')).toEqual([
      { status: 'failed', count: 10_000 },
      { status: 'pending', count: 3 },
    ]);
    expect(await run('fail-orphaned-deliveries')).toBe(3);
    expect(await deliveries('whe_gone')).toEqual([{ status: 'failed', count: 10_003 }]);
    expect(await deliveries('whe_here')).toEqual([{ status: 'pending', count: 1 }]);
    expect(await run('fail-orphaned-deliveries')).toBe(0);
  });

  it('forget all of the log that is 30 days old in one run, however much it is [WHE-215]', async () => {
    await seed('whe_old', 2_500, '30 days 1 minute');
    await seed('whe_young', 1, '29 days 23 hours');
    await store.query(
      `update webhook_deliveries set status = 'failed', next_attempt_at = null
       where endpoint_id in ('whe_old', 'whe_young')`,
    );
    expect(await run('purge-webhook-log')).toBe(5_000);
    expect(await deliveries('whe_old')).toEqual([]);
    expect(await deliveries('whe_young')).toEqual([{ status: 'failed', count: 1 }]);
    const { rows } = await store.query(`select id from events where id like 'evt_whe_old%'`);
    expect(rows).toEqual([]);
    // Without a delivery too: what never became one is forgotten with its event.
    const left = await store.query(`select from webhook_fan_outs where event_id like 'evt_whe_old%'`);
    expect(left.rowCount).toBe(0);
  });
});
