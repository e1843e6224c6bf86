import { type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '@millrace/testing';
import { createHarness, type Harness } from '../testing/harness.ts';
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
const never = (): void => undefined;

describe('one endpoint', () => {
  it('gets two attempts at once over all replicas, and each event once', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    // Known to answer well: a new endpoint gets one at once.
    await harness.store.query('insert into webhook_breakers (endpoint_id) values ($1)', [
      endpoint.endpointId,
    ]);
    const ids = await harness.queue(endpoint, 40);
    const held: ServerResponse[] = [];
    receiver.answer = (response) => held.push(response);
    await Promise.all([harness.start(), harness.start(), harness.start()]);
    for (let answered = 0; answered < ids.length; answered += 2) {
      await waitFor(() => held.length === 2);
      for (const response of held.splice(0)) response.writeHead(200).end();
    }
    await harness.logWhen(endpoint, isDelivered, ids.length);
    expect(receiver.atOnce.most).toBe(2);
    expect(receiver.received.map((each) => each.eventId).sort()).toEqual([...ids].sort());
  });

  it('that hangs delays nobody else', async () => {
    const hanging = await startReceiver();
    hanging.answer = never;
    const dead = await harness.addEndpoint(hanging.url);
    const alive = await harness.addEndpoint(receiver.url);
    await harness.queue(dead, 50);
    await harness.start();
    await waitFor(() => hanging.received.length > 0);
    await harness.emit(alive);
    // The case allows 5 s.
    await waitFor(() => receiver.received.length === 1, { timeoutMs: 5_000 });
    expect(hanging.atOnce.most).toBe(1);
    await hanging.close();
  });

  it('among 300 that hang delays nobody else', async () => {
    const hanging = await startReceiver();
    hanging.answer = never;
    for (let i = 0; i < 300; i++) await harness.queue(await harness.addEndpoint(hanging.url), 1);
    const alive = await harness.addEndpoint(receiver.url);
    await harness.store.query('insert into webhook_breakers (endpoint_id) values ($1)', [alive.endpointId]);
    // Half of the places go to endpoints of which nothing good is known.
    await harness.start({ WEBHOOKS_IN_FLIGHT: '64' });
    await waitFor(() => hanging.atOnce.now === 32);
    await harness.emit(alive);
    await waitFor(() => receiver.received.length === 1, { timeoutMs: 5_000 });
    expect(hanging.atOnce.most).toBe(32);
    await hanging.close();
  });

  it('that keeps failing gets probes only, and everything soon after it recovers', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    receiver.answer = answerStatus(503);
    await harness.queue(endpoint, 20);
    const { log, service } = await harness.start();
    const opened = (): boolean => log.lines.some((line) => line.message.includes('probed only'));
    await waitFor(opened);
    expect(receiver.received).toHaveLength(5);
    for (let probes = 6; probes < 10; probes++) {
      await harness.store.query(`update webhook_breakers set open_until = clock_timestamp()`);
      await harness.store.query('notify millrace_webhooks');
      await waitFor(() => receiver.received.length === probes);
      await waitFor(async () => {
        const { rows } = await harness.store.query<{ failures: number }>(
          'select failures from webhook_breakers',
        );
        return rows[0]?.failures === probes;
      });
    }
    expect(receiver.atOnce.most).toBe(1);
    receiver.answer = answerStatus(200);
    await harness.pass('1 minute');
    await harness.logWhen(endpoint, isDelivered, 20);
    expect(log.lines.some((line) => line.message.includes('answers again'))).toBe(true);
    expect(service.health()).toMatchObject({ healthy: true, ready: true });
  });
});

describe('a hostile receiver', () => {
  it.each<[string, Receiver['answer'], { status: string; lastStatus: number | null }]>([
    ['never answers', never, { status: 'pending', lastStatus: null }],
    [
      'drips',
      (response) => {
        const timer = setInterval(() => response.write('x'), 20);
        response.once('close', () => clearInterval(timer));
      },
      { status: 'pending', lastStatus: 200 },
    ],
    [
      'answers without end',
      (response) => {
        const block = Buffer.alloc(64 * 1024);
        const pump = (): void => {
          while (!response.destroyed && response.write(block));
        };
        response.on('drain', pump);
        pump();
      },
      { status: 'delivered', lastStatus: 200 },
    ],
    [
      'redirects inside',
      answerStatus(307, { location: 'http://169.254.169.254/' }),
      { status: 'pending', lastStatus: 307 },
    ],
  ])('that %s ends its attempt within its time [WHD-003]', async (_what, answer, expected) => {
    const endpoint = await harness.addEndpoint(receiver.url);
    receiver.answer = answer;
    await harness.start({ WEBHOOKS_TIMEOUT_MS: '400' });
    await harness.emit(endpoint);
    const rows = await harness.logWhen(endpoint, (row) => row.attempts === 1);
    expect(rows).toMatchObject([expected]);
    expect(receiver.received).toHaveLength(1);
  });
});
