import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { type Receiver, startReceiver } from './demo/receiver.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer } from './demo/walk.ts';
import { register } from './demo/webhooks.ts';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from './testing/trace-collector.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const services = ['api', 'cdn', 'encoder-1', 'encoder-2', 'reconciler', 'webhooks'];
const patienceMs = 120_000;

/** Kafka, an S3 server, PostgreSQL and every service, each a process of its own. */
describeWith(missingForKafka() ?? missingForS3(), 'npm run stack', () => {
  let stack: StartedStack;
  let customer: Customer;
  let receiver: Receiver;
  let collector: TraceCollector;

  beforeAll(async () => {
    collector = await startTraceCollector();
    receiver = await startReceiver();
    stack = await startStack({
      distributed: true,
      env: { ...collector.env, ENCODER_PRESET: 'ultrafast' },
      signal: new AbortController().signal,
    });
    customer = await signUp(stack, 'pro');
    await register(customer, receiver);
  }, 20 * 60_000);
  afterAll(async () => {
    // Only what did start, the last one first, whatever of it does not stop.
    const started = [stack, receiver, collector] as ({ stop(): Promise<unknown> } | undefined)[];
    const stopped: PromiseSettledResult<unknown>[] = [];
    for (const each of started) stopped.push(...(await Promise.allSettled([each?.stop()])));
    expect(stopped.filter(({ status }) => status === 'rejected')).toEqual([]);
  }, patienceMs);

  /** Uploads, waits for the webhook and plays. */
  const deliver = async (): Promise<string> => {
    const { client, projectId, domain } = customer;
    const { video } = await uploadFile(customer, film);
    const told = await waitFor(() => receiver.next(), { timeoutMs: patienceMs, what: 'the webhook' });
    expect(told.event).toMatchObject({ type: 'video.ready', data: { video: { id: video.id } } });
    const token = await client.createPlaybackToken({ projectId, videoId: video.id, body: { domain } });
    const playlist = await createPlayer(`https://${domain}`).get(token.playlistUrl ?? '');
    expect(playlist.toString('utf8')).toContain('#EXTM3U');
    return video.id;
  };

  it(
    'makes, announces and plays a video, and every process of it says that it is ready',
    async () => {
      const { pids, ops: addresses } = await stack.processes();
      expect(Object.keys(pids).sort()).toEqual([...services, 'kafka', 'postgres', 's3'].sort());
      for (const ops of Object.values(addresses)) expect((await fetch(`${ops}/ready`)).status).toBe(200);
      await deliver();
    },
    patienceMs,
  );

  it('was prepared by commands that change nothing when they are repeated', async () => {
    expect(await stack.millrace('migrate')).toEqual({ migrated: true, applied: [], newer: [] });
    expect(await stack.millrace('topics')).toMatchObject({
      data: expect.arrayContaining([{ name: 'millrace.playback.state', partitions: 4 }]) as unknown,
      differences: [],
    });
    expect(await stack.millrace('bucket')).toMatchObject({ bucket: 'kept' });
  }, 120_000);

  it(
    'is one trace from the upload to the webhook, over Kafka and through every process on the way',
    async () => {
      const delivery = await waitFor(
        () => collector.spans().find(({ name }) => name === 'deliver webhook') ?? null,
        { timeoutMs: patienceMs },
      );
      const ofTrace = (): CollectedSpan[] =>
        collector.spans().filter(({ traceId }) => traceId === delivery.traceId);
      // Each process sends by itself.
      await waitFor(() => pathTo(delivery, ofTrace()).length === 5, { timeoutMs: patienceMs });
      expect(pathTo(delivery, ofTrace())).toEqual([
        'millrace-api POST /v1/projects/{projectId}/uploads/{uploadId}/complete',
        'millrace-encoder encode assemble',
        'millrace-reconciler publish millrace.video.events',
        'millrace-webhooks process millrace.video.events',
        'millrace-webhooks deliver webhook',
      ]);
      expect(ofTrace().map(({ service, name }) => `${service} ${name}`)).toEqual(
        expect.arrayContaining(['millrace-encoder process millrace.encode.tasks']),
      );
      // The CDN asked the API for the video, which the API's span follows from.
      const asked = 'GET /internal/playback-state/{videoId}';
      const [ask, answer] = await waitFor(() => {
        const of = (service: string) =>
          collector.spans().find((span) => span.service === service && span.name === asked);
        const pair = [of('millrace-cdn'), of('millrace-api')];
        return pair.every((span) => span !== undefined) ? pair : null;
      });
      expect(answer?.traceId).toBe(ask?.traceId);
      expect(answer?.parentSpanId).toBe(ask?.spanId);
    },
    patienceMs,
  );

  it(
    'counts what each service does, how it ends and how long it takes, and shows what waits on the bus',
    async () => {
      const { ops } = await stack.processes();
      const metrics = async (name: string): Promise<string> =>
        (await fetch(`${ops[name] ?? ''}/metrics`)).text();
      // One of the two encoders made the videos so far, or both did.
      const encoders = async (): Promise<string> =>
        (await metrics('encoder-1')) + (await metrics('encoder-2'));
      const of = async (service: string): Promise<string> =>
        service === 'encoder' ? encoders() : metrics(service);
      const complete = 'route="/v1/projects/{projectId}/uploads/{uploadId}/complete"';
      const expected: [string, RegExp][] = [
        ['api', new RegExp(`requests_total{${complete},.*status="200".*} [1-9]`)],
        ['api', new RegExp(`request_duration_seconds_count{.*${complete}.*} [1-9]`)],
        ['cdn', /^millrace_cdn_requests_total{.*status="200".*} [1-9]/m],
        ['cdn', /^millrace_cdn_request_duration_seconds_count{.*} [1-9]/m],
        ['encoder', /^millrace_encode_tasks_total{kind="assemble",result="done".*} [1-9]/m],
        ['encoder', /^millrace_encode_task_seconds_count{.*kind="assemble".*} [1-9]/m],
        ['encoder', /^millrace_bus_lag_messages{topic="millrace.encode.tasks".*} \d/m],
        ['webhooks', /^millrace_webhook_attempts_total{outcome="delivered".*} [1-9]/m],
        ['webhooks', /^millrace_webhook_attempts_total{outcome="failed".*} 0/m],
        ['webhooks', /^millrace_webhook_attempt_seconds_count{.*} [1-9]/m],
        ['webhooks', /^millrace_bus_lag_messages{topic="millrace.video.events".*} \d/m],
        ['reconciler', /^millrace_loop_failures_total{loop="outbox-relay".*} \d/m],
        ['reconciler', /^millrace_outbox_delay_seconds_count{.*} [1-9]/m],
        ['reconciler', /^millrace_reconcile_duration_seconds_count{.*loop="reap-encode-leases".*} [1-9]/m],
        ['reconciler', /^millrace_bus_lag_messages{topic="millrace.playback.usage".*} \d/m],
        ['cdn', /^millrace_bus_lag_messages{topic="millrace.playback.state".*} \d/m],
      ];
      for (const [service, pattern] of expected) {
        const what = `${service} to show ${String(pattern)}`;
        // The lag is looked at every 15 s.
        await waitFor(async () => pattern.test(await of(service)), { timeoutMs: patienceMs / 3, what });
      }
    },
    patienceMs,
  );

  it(
    'starts a service again that was killed, and goes on',
    async () => {
      const before = await stack.processes();
      for (const name of services) {
        const pid = before.pids[name];
        if (pid === undefined) throw new Error(`${name} does not run`);
        process.kill(pid, 'SIGKILL');
      }
      for (const name of services) {
        const isBack = async (): Promise<boolean> => {
          const { pids, ops } = await stack.processes();
          return (
            ![undefined, before.pids[name]].includes(pids[name]) &&
            (await fetch(`${ops[name] ?? ''}/ready`)).ok
          );
        };
        await waitFor(isBack, { timeoutMs: patienceMs, what: `${name} to be back` });
      }
      await deliver();
    },
    2 * patienceMs,
  );

  it(
    'leaves no process behind, even when it is killed itself',
    async () => {
      const isAlive = (pid: number): boolean => {
        try {
          return process.kill(pid, 0);
        } catch {
          return false;
        }
      };
      const pids = Object.values((await stack.processes()).pids);
      expect(pids.filter(isAlive)).toEqual(pids);
      await stack.kill(false);
      await waitFor(() => !pids.some(isAlive), { timeoutMs: patienceMs, what: 'the end of all' });
    },
    patienceMs,
  );
});

/** Services and names of a span's ancestors, from the root, and its own. */
function pathTo(span: CollectedSpan, spans: readonly CollectedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathTo(parent, spans)), `${span.service} ${span.name}`];
}
