import { type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Bus, BusUnavailableError } from '@millrace/bus';
import { newWebhookSecret, parseKeySet, sealWebhookSecret } from '@millrace/domain';
import { systemClock } from '@millrace/platform';
import { attemptsUnderWay, type Database, DatabaseUnavailableError, replaceSecret } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { createHarness, type Harness, secretKeys, type TestEndpoint } from '../testing/harness.ts';
import { isSignedBy, type Receiver, startReceiver } from '../testing/receiver.ts';

let harness: Harness;
let receiver: Receiver;
beforeEach(async () => {
  harness = await createHarness();
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
  await harness.close();
});

const isDelivered = (row: { status: string }): boolean => row.status === 'delivered';

/** The record, with statements of one name failing as long as the test says. */
function failing(store: Database, name: string, fails: () => boolean): Database {
  return {
    query: (text, values, named) =>
      named === name && fails()
        ? Promise.reject(new DatabaseUnavailableError('the record is away'))
        : store.query(text, values, named),
    transaction: (work) => store.transaction(work),
    close: () => store.close(),
  };
}

/** What a worker that was killed leaves of an attempt. */
async function leaveClaim(endpoint: TestEndpoint, worker: string): Promise<void> {
  await harness.store.query(
    `with taken as (delete from webhook_queue where endpoint_id = $1 returning *)
     insert into webhook_claims (endpoint_id, slot, due_at, delivery_id, event_id, attempts, redelivery,
       worker, boot, started_at, lease_until)
     select endpoint_id, 1, due_at, delivery_id, event_id, attempts, redelivery,
       $2, 'earlier', clock_timestamp(), clock_timestamp() + interval '20 s' from taken`,
    [endpoint.endpointId, worker],
  );
}
const claims = async (): Promise<number> =>
  (await harness.store.query('select from webhook_claims')).rowCount;

describe('an attempt whose worker was lost', () => {
  it('is counted and made again when the lease has run out, not before [WHD-402]', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    const other = await harness.addEndpoint(receiver.url);
    const [eventId] = await harness.queue(endpoint, 1);
    await leaveClaim(endpoint, 'lost');
    const { log } = await harness.start();
    await harness.emit(other);
    await harness.logWhen(other, isDelivered);
    expect(await harness.log(endpoint)).toMatchObject([{ attempts: 0, status: 'pending' }]);
    await harness.pass('1 hour');
    const rows = await harness.logWhen(endpoint, isDelivered);
    expect(rows).toMatchObject([{ eventId, attempts: 2 }]);
    expect(receiver.received.filter((each) => each.eventId === eventId)).toHaveLength(1);
    expect(log.text()).toContain('taken over');
  });

  it('is made again at once when it was this worker before a restart', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    await harness.queue(endpoint, 1);
    await leaveClaim(endpoint, 'embedded');
    await harness.start({ WEBHOOKS_WORKER: 'embedded' });
    expect(await harness.logWhen(endpoint, isDelivered)).toMatchObject([{ attempts: 2 }]);
  });
});

describe('a record that is away', () => {
  it('gets the results when it is back, and nothing is sent again', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    let away = true;
    // Its endpoint is known: recording takes no transaction.
    await harness.store.query('insert into webhook_breakers (endpoint_id) values ($1)', [
      endpoint.endpointId,
    ]);
    let takeOvers = 0;
    const counting = failing(harness.store, 'webhook-take-over', () => ++takeOvers < 0);
    const store = failing(counting, 'webhook-turn', () => away);
    const { service } = await harness.start({}, { store });
    await harness.emit(endpoint);
    await waitFor(() => !service.health().ready);
    expect(service.health()).toMatchObject({ healthy: true, checks: { record: 'the record is away' } });
    // Another hour passes for the lease too: a live worker takes nothing over from itself.
    await harness.pass('1 hour');
    const before = takeOvers;
    await waitFor(() => takeOvers >= before + 2);
    away = false;
    expect(await harness.logWhen(endpoint, isDelivered)).toMatchObject([{ attempts: 1 }]);
    await waitFor(() => service.health().ready);
    expect(receiver.received).toHaveLength(1);
  });

  it('that loses the answer to a claim costs its deliveries the lease, not the rest of the worker’s life', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    await harness.queue(endpoint, 1);
    let lost = 0;
    const store: Database = {
      ...harness.store,
      query: async (text, values, named) => {
        const result = await harness.store.query(text, values, named);
        if (named !== 'webhook-claim' || lost > 0 || (await claims()) === 0) return result as never;
        lost += 1;
        throw new DatabaseUnavailableError('connection terminated');
      },
    };
    await harness.start({}, { store });
    await waitFor(() => lost === 1);
    await harness.pass('1 hour');
    expect(await harness.logWhen(endpoint, isDelivered)).toMatchObject([{ attempts: 2 }]);
    expect(await claims()).toBe(0);
  });

  it('says that it is not ready, and is not started again for it, when nothing can be claimed', async () => {
    const store = failing(harness.store, 'webhook-claim', () => true);
    const { service } = await harness.start({}, { store });
    await waitFor(() => !service.health().ready);
    expect(service.health()).toMatchObject({ healthy: true, checks: { deliver: 'the record is away' } });
  });
});

describe('a bus that is away', () => {
  it('keeps nothing waiting that is queued, and brings its events when it is back', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    let away = true;
    const bus: Bus = {
      ...harness.bus,
      subscribe: (...args) =>
        away ? Promise.reject(new BusUnavailableError('the bus is away')) : harness.bus.subscribe(...args),
    };
    await harness.queue(endpoint, 1);
    await harness.emit(endpoint);
    const { service } = await harness.start({}, { bus });
    await harness.logWhen(endpoint, isDelivered, 1);
    await waitFor(() => service.health().checks['consume-events'] === 'the bus is away');
    expect(service.health()).toMatchObject({ healthy: true, ready: false });
    away = false;
    await harness.logWhen(endpoint, isDelivered, 2);
    await waitFor(() => service.health().ready);
  });
});

describe('a stop', () => {
  it('lets attempts end and records them, and leaves no claim', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    const held: ServerResponse[] = [];
    receiver.answer = (response) => held.push(response);
    await harness.queue(endpoint, 3);
    const { service } = await harness.start();
    await waitFor(() => held.length === 1);
    const stopped = service.stop();
    for (const response of held) response.writeHead(200).end();
    await stopped;
    const rows = await harness.log(endpoint);
    expect(rows.map((row) => row.status).sort()).toEqual(['delivered', 'pending', 'pending']);
    expect(rows.map((row) => row.attempts).sort()).toEqual([0, 0, 1]);
    expect(await claims()).toBe(0);
    expect(receiver.received).toHaveLength(1);
  });
});

describe('rotating a secret', () => {
  it('holds for every request that comes after it, waiting deliveries too', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    const { endpointId, projectId, secret: old } = endpoint;
    await harness.queue(endpoint, 80);
    await harness.start();
    await waitFor(() => receiver.received.length >= 10);
    const fresh = newWebhookSecret();
    const sealed = sealWebhookSecret(fresh, endpointId, parseKeySet(secretKeys));
    await replaceSecret(harness.store, { projectId, endpointId, sealed });
    const before = new Set(await attemptsUnderWay(harness.store, endpointId));
    await waitFor(async () =>
      (await attemptsUnderWay(harness.store, endpointId)).every((claim) => !before.has(claim)),
    );
    const count = receiver.received.length;
    await harness.logWhen(endpoint, isDelivered, 80);
    const later = receiver.received.slice(count);
    expect(later.length).toBeGreaterThan(0);
    expect(later.every((each) => isSignedBy(each, fresh))).toBe(true);
    expect(receiver.received.slice(0, 10).every((each) => isSignedBy(each, old))).toBe(true);
  });
});

describe('a clock that is an hour off', () => {
  it.each([-3_600_000, 3_600_000])('dates signatures and delays nothing (%i ms)', async (offMs) => {
    const clock = { ...systemClock, now: () => new Date(Date.now() + offMs) };
    const endpoint = await harness.addEndpoint(receiver.url);
    await harness.start({}, { clock });
    await harness.emit(endpoint);
    await harness.logWhen(endpoint, isDelivered);
    const t = Number(/^t=(\d+)/.exec(receiver.received[0]?.signature ?? '')?.[1]);
    expect(Math.abs(t * 1_000 - (Date.now() + offMs))).toBeLessThan(30_000);
  });
});
