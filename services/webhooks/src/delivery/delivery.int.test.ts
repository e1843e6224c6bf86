import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { topics } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { createHarness, type Harness } from '../testing/harness.ts';
import { answerStatus, isSignedBy, type Receiver, startReceiver } from '../testing/receiver.ts';

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
const tried = (attempts: number) => (row: { attempts: number }) => row.attempts === attempts;

describe('an event', () => {
  it('reaches its endpoint signed, once for however many messages of it', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    await harness.start();
    const data = { video: { title: 'a/"b" é 日本 🎬' } };
    const eventId = await harness.emit(endpoint, data);
    const rows = await harness.logWhen(endpoint, isDelivered);
    const value = { v: 1, eventId, type: 'video.ready', projectId: endpoint.projectId, videoId: 'vid_1' };
    await harness.bus.publish([{ topic: topics.videoEvents.name, key: 'vid_1', value }]);
    const second = await harness.emit(endpoint, data);
    await harness.logWhen(endpoint, isDelivered, 2);

    expect(receiver.received.map((each) => each.eventId)).toEqual([eventId, second]);
    expect(receiver.received.every((each) => isSignedBy(each, endpoint.secret))).toBe(true);
    expect(rows).toMatchObject([
      { eventId, attempts: 1, lastStatus: 204, lastError: null, nextAttemptAt: null },
    ]);
  });

  it('that does not parse goes to the dead topic, and those behind it go on', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    await harness.start();
    await harness.bus.publish([{ topic: topics.videoEvents.name, key: 'vid_1', value: { v: 2 } }]);
    await harness.emit(endpoint);
    await harness.logWhen(endpoint, isDelivered);
    await waitFor(async () => {
      const lag = await harness.bus.lag('nobody', `${topics.videoEvents.name}.dead`);
      return [...lag.values()].some((messages) => messages > 0);
    });
  });

  it('is tried eight times with growing waits, freshly signed, and then failed [WHD-402]', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    receiver.answer = answerStatus(500);
    const { log } = await harness.start();
    const eventId = await harness.emit(endpoint);
    const waits = [10, 60, 300, 1_800, 7_200, 21_600, 43_200];
    for (const [i, seconds] of waits.entries()) {
      const [row] = await harness.logWhen(endpoint, tried(i + 1));
      expect(row).toMatchObject({ status: 'pending', lastStatus: 500 });
      const wait = ((row?.nextAttemptAt?.getTime() ?? 0) - (row?.lastAttemptAt?.getTime() ?? 0)) / 1_000;
      expect(wait).toBeGreaterThan(seconds * 0.9 - 1);
      expect(wait).toBeLessThan(seconds * 1.1 + 5);
      await harness.pass(`${seconds * 1.1 + 1} s`);
    }
    const rows = await harness.logWhen(endpoint, tried(8));
    expect(rows).toMatchObject([{ eventId, status: 'failed', lastStatus: 500, nextAttemptAt: null }]);
    expect(receiver.received).toHaveLength(8);
    expect(new Set(receiver.received.map((each) => each.body)).size).toBe(1);
    expect(receiver.received.every((each) => isSignedBy(each, endpoint.secret))).toBe(true);
    expect(log.text()).not.toContain(endpoint.secret);
    expect(log.text()).not.toContain(receiver.url);
  });

  it('is still sent to an endpoint at which many have failed: it is never switched off [WHD-409]', async () => {
    const endpoint = await harness.addEndpoint(receiver.url);
    receiver.answer = answerStatus(410);
    await harness.queue(endpoint, 3);
    await harness.start();
    await waitFor(
      async () => {
        await harness.pass('14 hours');
        return (await harness.log(endpoint)).every(({ status }) => status === 'failed');
      },
      { what: 'every delivery to fail' },
    );
    receiver.answer = answerStatus(204);
    const eventId = await harness.emit(endpoint);
    await waitFor(async () => {
      await harness.pass('1 minute');
      return (await harness.log(endpoint)).some((row) => row.eventId === eventId && isDelivered(row));
    });
  });
});
