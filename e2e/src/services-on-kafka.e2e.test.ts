import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { topics } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import kafkajs from 'kafkajs';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import { type RunningStack } from '../../dev/stack/stack.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { type Receiver, startReceiver } from './demo/receiver.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';
import { register } from './demo/webhooks.ts';
import { startTestStack, type TestStack } from './testing/test-stack.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
/** Longer than the CDN plays by what it knows, and than any session of the bus. */
const awayMs = 90_000;
/** For processes that have no session yet. */
const absentMs = 45_000;
/** In which all must go on by itself after that. */
const recoverMs = 120_000;

jest.setTimeout(awayMs + 2 * recoverMs);

describeWith(missingForKafka() ?? missingForS3(), 'services on Kafka', () => {
  let stack: TestStack;
  let customer: Customer;
  let receiver: Receiver;
  let endpointId: string;

  beforeAll(async () => {
    stack = await startTestStack();
    customer = await signUp(stack.attached, 'pro');
    receiver = await startReceiver();
    endpointId = (await register(customer, receiver)).endpoint.id;
  }, 20 * 60_000);
  afterAll(async () => {
    await (stack as TestStack | undefined)?.stop();
    await (receiver as Receiver | undefined)?.stop();
  }, recoverMs);

  const valueOf = async (name: string, series: string): Promise<number> =>
    (await stack.metric(name, series)) ?? 0;
  /** The next video that the customer's server hears of. */
  const announced = async (): Promise<string> => {
    const { event } = await waitFor(() => receiver.next(), { timeoutMs: recoverMs, what: 'a webhook' });
    return 'video' in event.data ? event.data.video.id : '';
  };
  const isReady = async (name: string): Promise<boolean> =>
    (await fetch(`${stack.ready().ops[name] ?? ''}/ready`)).ok;
  const upload = async (): Promise<string> => (await uploadFile(customer, film)).video.id;
  /** What a new viewer is answered. */
  async function play(videoId: string): Promise<string> {
    const { client, projectId, domain } = customer;
    const { playlistUrl = '' } = await client.createPlaybackToken({ projectId, videoId, body: { domain } });
    return (await createPlayer(`https://${domain}`).get(playlistUrl)).toString('utf8');
  }

  it('park and count what nobody can read, do what comes behind it, and are not started again', async () => {
    const { accountId, projectId } = customer;
    const services = servicesOf(stack);
    const topicsOf: [string, { name: string }, object][] = [
      ['encoder-1', topics.encodeTasks, { v: 1, taskId: 'tsk_1', kind: 'plan' }],
      [
        'webhooks',
        topics.videoEvents,
        { v: 1, eventId: 'evt_1', type: 'video.ready', projectId, videoId: 'vid_1' },
      ],
      ['cdn', topics.playbackState, { v: 1, kind: 'heartbeat', at: new Date().toISOString() }],
      ['reconciler', topics.playbackUsage, { v: 1, bootId: 'boot', sequence: 1, accountId, views: [] }],
      [
        'reconciler',
        topics.playbackConfirmations,
        { v: 1, bootId: 'boot', confirmedUpTo: new Date().toISOString(), ended: true },
      ],
    ];
    const consumed = (name: string, topic: string, outcome: string): Promise<number> =>
      valueOf(name, `millrace_bus_consumed_total{topic="${topic}",outcome="${outcome}"`);
    // The CDN asks the API instead of parking; what it has seen shows in what it did not understand.
    const unread = (name: string, topic: string): Promise<number> =>
      name === 'cdn' ? valueOf(name, 'millrace_cdn_state_unreadable_total') : consumed(name, topic, 'dead');

    const producer = new kafkajs.Kafka({
      ...{ brokers: [stack.servers.kafka.address], logLevel: kafkajs.logLevel.NOTHING },
    }).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
    await producer.connect();
    for (const [name, topic, good] of topicsOf) {
      const before = await consumed(name, topic.name, 'handled');
      const unreadBefore = await unread(name, topic.name);
      const values = ['not json', '{"v":99}', JSON.stringify(good)];
      await producer.send({
        topic: topic.name,
        messages: values.map((value) => ({ key: 'same', value })),
      });
      const what = `${name} to go on behind what it cannot read`;
      await waitFor(async () => (await unread(name, topic.name)) >= unreadBefore + 2, {
        timeoutMs: recoverMs,
        what,
      });
      if (name === 'cdn') continue;
      const handled = async (): Promise<boolean> => (await consumed(name, topic.name, 'handled')) > before;
      await waitFor(handled, { timeoutMs: recoverMs, what });
    }
    await producer.disconnect();
    const videoId = await upload();
    expect(await announced()).toBe(videoId);
    expect(await play(videoId)).toContain('#EXTM3U');
    expect(servicesOf(stack)).toEqual(services);
  });

  it('come back while the broker is away, do what needs only the record, and join when it is there', async () => {
    const { client, projectId } = customer;
    const killed = [...stack.services.values()].filter(({ name }) =>
      /^(reconciler|encoder|webhooks)/.test(name),
    );
    expect(killed.map(({ name }) => name).sort()).toEqual(['encoder-1', 'reconciler', 'webhooks']);
    await stack.servers.kafka.kill();
    const until = performance.now() + absentMs;
    const before = new Map(killed.map(({ name, pid }) => [name, pid]));
    for (const service of killed) service.kill('SIGKILL');
    const isBack = async ({ name, pid, ops }: (typeof killed)[number]): Promise<boolean> =>
      pid !== before.get(name) && (await fetch(`${ops}/health`).catch(() => null))?.ok === true;
    for (const service of killed)
      await waitFor(() => isBack(service), { timeoutMs: recoverMs, what: `${service.name} to be back` });
    const services = servicesOf(stack);

    // The webhooks deliver what is queued, the encoder finds what is due, the reconciler leads and reaps leases.
    await client.testWebhookEndpoint({ projectId, endpointId });
    const { event } = await waitFor(() => receiver.next(), { timeoutMs: recoverMs, what: 'the test event' });
    expect(event.type).toBe('webhook.test');
    const videoId = await upload();
    const isEncoded = async (): Promise<boolean> =>
      (await client.getVideo({ projectId, videoId })).status === 'ready';
    await waitFor(isEncoded, { timeoutMs: recoverMs, what: 'a video to be ready' });
    const reaps = 'millrace_loop_last_success_timestamp_seconds{loop="reap-encode-leases"';
    const reaped = async (): Promise<boolean> => (await valueOf('reconciler', reaps)) > 0;
    await waitFor(reaped, { timeoutMs: recoverMs, what: 'the reconciler to lead' });
    await sleep(Math.max(0, until - performance.now()));
    for (const { name, ops } of killed) {
      expect([name, (await fetch(`${ops}/health`)).ok, await isReady(name)]).toEqual([name, true, false]);
    }
    expect(servicesOf(stack)).toEqual(services);

    await stack.servers.kafka.start();
    for (const { name } of killed)
      await waitFor(() => isReady(name), { timeoutMs: recoverMs, what: `${name} to be ready` });
    expect(await announced()).toBe(videoId);
    expect(await play(videoId)).toContain('#EXTM3U');
    expect(servicesOf(stack)).toEqual(services);
  });

  it('take uploads and play while the broker is away for minutes, go on by themselves, and lose nothing', async () => {
    const before = await upload();
    expect(await announced()).toBe(before);
    expect(await play(before)).toContain('#EXTM3U');
    const services = servicesOf(stack);

    await stack.servers.kafka.kill();
    const until = performance.now() + awayMs;
    const meanwhile: string[] = [];
    // Traffic all along: some uploads, and a viewer now and then.
    for (let turn = 0; performance.now() < until; turn++) {
      if (turn % 6 === 0) meanwhile.push(await upload());
      expect(await play(before)).toContain('#EXTM3U');
      await sleep(Math.min(5_000, Math.max(0, until - performance.now())));
    }
    // Nobody takes them out of service meanwhile.
    expect([await isReady('api'), await isReady('cdn')]).toEqual([true, true]);

    await stack.servers.kafka.start();
    meanwhile.push(await upload());
    const told: string[] = [];
    while (told.length < meanwhile.length) told.push(await announced());
    expect(told.sort()).toEqual(meanwhile.sort());
    for (const videoId of meanwhile) expect(await play(videoId)).toContain('#EXTM3U');
    // Nobody had to start anything again.
    expect(servicesOf(stack)).toEqual(services);
    for (const name of Object.keys(stack.ready().ops))
      await waitFor(() => isReady(name), { timeoutMs: recoverMs, what: `${name} to be ready` });
  });
});

/** The processes of services: one that was started again is another one. */
const servicesOf = (stack: RunningStack): [string, number][] =>
  Object.entries(stack.ready().pids).filter(([name]) => stack.services.has(name));
