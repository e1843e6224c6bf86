import { type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Database, DatabaseUnavailableError } from '@millrace/store';
import { waitFor } from '@millrace/testing';
import { createHarness, type Harness, type TestEndpoint } from '../testing/harness.ts';
import { answerStatus, type Receiver, startReceiver } from '../testing/receiver.ts';

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

const claims = async (): Promise<number> =>
  (await harness.store.query('select from webhook_claims')).rowCount;

/** One that is known to answer well: it gets two attempts at once. */
async function addCalmEndpoint(path = ''): Promise<TestEndpoint> {
  const endpoint = await harness.addEndpoint(`${receiver.url}${path}`);
  await harness.store.query('insert into webhook_breakers (endpoint_id) values ($1)', [endpoint.endpointId]);
  return endpoint;
}

/** The record, with something done before statements of one name. */
const before = (name: string, act: () => Promise<unknown>): Database => ({
  ...harness.store,
  query: async (text, values, named) => {
    if (named === name) await act();
    return harness.store.query(text, values, named);
  },
});

describe('the deliveries that wait at an endpoint', () => {
  it('follow one another as each is recorded, without a look along the endpoints', async () => {
    const endpoint = await addCalmEndpoint();
    const ids = await harness.queue(endpoint, 9);
    let looks = 0;
    const store = before('webhook-claim', () =>
      ++looks === 1 ? Promise.resolve() : Promise.reject(new DatabaseUnavailableError('the record is away')),
    );
    await harness.start({}, { store });
    const rows = await harness.logWhen(endpoint, isDelivered, ids.length);
    expect(rows.every(({ attempts, lastStatus }) => attempts === 1 && lastStatus === 204)).toBe(true);
    expect(receiver.received.map(({ eventId }) => eventId).sort()).toEqual([...ids].sort());
    expect(receiver.atOnce.most).toBeLessThanOrEqual(2);
    expect(await claims()).toBe(0);
  });

  it('go on one by one once an attempt beside theirs has failed', async () => {
    const endpoint = await addCalmEndpoint();
    await harness.queue(endpoint, 6);
    const held: ServerResponse[] = [];
    receiver.answer = (response) => held.push(response);
    await harness.start();
    await waitFor(() => held.length === 2);
    await harness.store.query('update webhook_breakers set failures = 1');
    for (const response of held.splice(0)) response.writeHead(204).end();
    await waitFor(() => held.length > 0);
    expect(await claims()).toBe(1);
    receiver.answer = answerStatus(204);
    for (const response of held) response.writeHead(204).end();
    await harness.logWhen(endpoint, isDelivered, 6);
  });

  it('are passed over while a rival takes them', async () => {
    const endpoint = await addCalmEndpoint();
    await harness.queue(endpoint, 4);
    const rival = Promise.withResolvers<undefined>();
    const take = (): Promise<unknown> => {
      const taken = Promise.withResolvers<undefined>();
      const giveUp = new Error('the rival gives up');
      void harness.store
        .transaction(async (tx) => {
          await tx.query(`delete from webhook_queue where due_at = (select min(due_at) from webhook_queue)`);
          taken.resolve(undefined);
          await rival.promise;
          throw giveUp;
        })
        .catch(taken.reject);
      return taken.promise;
    };
    let turns = 0;
    await harness.start({}, { store: before('webhook-turn', async () => ++turns === 1 && (await take())) });
    const rows = async (): Promise<number> => (await harness.log(endpoint)).filter(isDelivered).length;
    // Nobody waits for the rival: all but its delivery go their way.
    await waitFor(async () => (await rows()) === 3);
    rival.resolve(undefined);
    expect((await harness.logWhen(endpoint, isDelivered, 4)).every(({ attempts }) => attempts === 1)).toBe(
      true,
    );
    expect(receiver.received).toHaveLength(4);
  });

  it('let others have their turn when places are short', async () => {
    const endpoints = [await addCalmEndpoint('/a'), await addCalmEndpoint('/b')];
    for (const endpoint of endpoints) await harness.queue(endpoint, 20);
    await harness.start({ WEBHOOKS_IN_FLIGHT: '2' });
    for (const endpoint of endpoints) await harness.logWhen(endpoint, isDelivered, 20);
    const paths = receiver.received.map(({ path }) => path);
    expect(new Set(paths.slice(0, 6)).size).toBe(2);
    expect(receiver.atOnce.most).toBeLessThanOrEqual(2);
  });
});
