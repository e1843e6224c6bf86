import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Video } from '@millrace/contract';
import { waitFor } from '@millrace/testing';
import { missingForKafka } from '../../dev/kafka/jars.ts';
import { allSelectors, dashboardQueries, runbookQueries } from '../../dev/prometheus/expressions.ts';
import { missingForPrometheus } from '../../dev/prometheus/programs.ts';
import { type Prometheus, startPrometheus } from '../../dev/prometheus/server.ts';
import { describeWith } from '../../dev/real-part.ts';
import { missingForS3 } from '../../dev/s3/versitygw.ts';
import { type Customer, signUp } from './demo/customer.ts';
import { untilReady } from './demo/demo.ts';
import { startReceiver } from './demo/receiver.ts';
import { checkRefusals } from './demo/refusals.ts';
import { createReport } from './demo/report.ts';
import { type StartedStack, startStack } from './demo/stack.ts';
import { uploadFile } from './demo/upload.ts';
import { createPlayer, walkVideo } from './demo/walk.ts';
import { checkReadyEvent, subscribe, type Webhooks } from './demo/webhooks.ts';

const film = fileURLToPath(new URL('../../packages/testing/media/short_0_2s.mp4', import.meta.url));
const firstBuildMs = 20 * 60_000;
const patienceMs = 180_000;
/** Of the stack. */
const encoders = 2;

/** Selectors of what a service that is well does not have, and why. */
const unseen: readonly [selector: RegExp, why: string][] = [
  [/^millrace_http_requests_total\{.*status=~"5\.\."/, 'no request failed'],
  [/^millrace_cdn_requests_total\{.*status=~"5\.\."/, 'no request failed'],
  [/^millrace_probe_total\b/, 'the stack has no canaries'],
  [/^millrace_kubernetes_/, 'the stack has no Kubernetes; the operator’s tests look at what it shows there'],
];

/** The demo's walk on the distributed stack, scraped by a real Prometheus with the chart's rules. */
describeWith(
  missingForKafka() ?? missingForS3() ?? missingForPrometheus(),
  'dashboards and rules after the demo',
  () => {
    let stack: StartedStack;
    let prometheus: Prometheus;
    let folder: string;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'millrace-observability-'));
      const signal = new AbortController().signal;
      stack = await startStack({ distributed: true, env: { ENCODER_PRESET: 'ultrafast' }, signal });
      const { ops } = await stack.processes();
      // The chart runs the API's program for the internal routes too.
      const targets = { ...ops, ...(ops['api'] !== undefined && { internal: ops['api'] }) };
      prometheus = await startPrometheus({ targets });
      // Rates see what changes between two scrapes; what begins with the first event has no earlier one.
      await waitFor(async () => (await prometheus.query('count(millrace_ready == 1)'))[0]?.value[1] === '7', {
        timeoutMs: patienceMs,
      });
      await walk(signal);
    }, firstBuildMs);
    afterAll(async () => {
      await (prometheus as Prometheus | undefined)?.stop();
      await (stack as StartedStack | undefined)?.stop();
      await rm(folder, { recursive: true, force: true });
    }, patienceMs);

    let delivered = 0;
    /**
     * Uploads, and waits for the webhook and for Prometheus to have seen it all. A series that begins with its first
     * event has no rate: one more than there are encoders gives each kind of task a second attempt somewhere.
     */
    async function deliver(customer: Customer, webhooks: Webhooks): Promise<Video> {
      const { video } = await uploadFile(customer, film);
      const ready = await untilReady(customer, video.id);
      await checkReadyEvent(webhooks, { name: 'ready', videoId: video.id });
      delivered += 1;
      const assembled = 'sum(millrace_encode_tasks_total{kind="assemble",result="done"})';
      await waitFor(async () => (await prometheus.query(assembled))[0]?.value[1] === String(delivered), {
        timeoutMs: patienceMs,
        what: 'Prometheus to see the encode',
      });
      return ready;
    }

    async function walk(signal: AbortSignal): Promise<void> {
      const report = createReport({ write: () => true, isTTY: false });
      const receiver = await startReceiver();
      try {
        const customer = await signUp(stack, 'pro', signal);
        const webhooks = await subscribe(report, customer, { receiver, signal });
        const { client, projectId, domain } = customer;
        let ready = await deliver(customer, webhooks);
        for (let others = 0; others < encoders; others++) ready = await deliver(customer, webhooks);
        const videoId = ready.id;
        const player = createPlayer(`https://${domain}`, signal);
        const { token, playlistUrl = '' } = await client.createPlaybackToken({
          ...{ projectId, videoId, body: { domain } },
        });
        await walkVideo(player, playlistUrl, folder);
        await checkRefusals({ stack, report, customer, video: ready, player, playlistUrl, token });
        await checkReadyEvent(webhooks, { name: 'ready again', videoId });
        // The hold of before may have been lifted too soon to be confirmed by the CDN.
        await stack.millrace('video', 'hold', videoId, '--reason', 'stays');
        const confirmed = 'sum(millrace_hold_propagation_seconds_count)';
        await waitFor(async () => Number((await prometheus.query(confirmed))[0]?.value[1] ?? 0) > 0, {
          timeoutMs: patienceMs,
          what: 'the CDN to confirm a hold',
        });
        await stack.millrace('video', 'lift', videoId);
      } finally {
        await receiver.stop();
      }
    }

    it(
      'give a sample for every query, with the labels that its legend names',
      async () => {
        let missing = dashboardQueries();
        const look = async (): Promise<boolean> => {
          const answers = await Promise.all(missing.map(async ({ expr }) => prometheus.query(expr)));
          missing = missing.filter(({ labels }, index) => {
            const samples = answers[index] ?? [];
            const isShown = (value: string): boolean => value !== 'NaN';
            return !samples.some(
              ({ metric, value }) =>
                isShown(value[1]) && labels.every((label) => metric[label] !== undefined),
            );
          });
          return missing.length === 0;
        };
        await waitFor(look, { timeoutMs: 60_000 }).catch(() => undefined);
        expect(missing).toEqual([]);
      },
      patienceMs,
    );

    it('show nothing of another installation', async () => {
      const shown = await Promise.all(
        dashboardQueries('elsewhere').map(async ({ expr }) => prometheus.query(expr)),
      );
      expect(shown.flat()).toEqual([]);
    });

    it(
      'name only series that there are, with labels and values that there are',
      async () => {
        const selectors = allSelectors().filter((selector) => !unseen.some(([each]) => each.test(selector)));
        const series = await Promise.all(selectors.map((selector) => prometheus.series(selector)));
        expect(selectors.filter((_selector, index) => series[index]?.length === 0)).toEqual([]);
      },
      patienceMs,
    );

    it('are understood by Prometheus where runbooks tell to ask', async () => {
      for (const { expr } of runbookQueries()) await expect(prometheus.query(expr)).resolves.toBeDefined();
    });

    it('evaluate without an error, and no alert fires on a service that is well', async () => {
      const rules = await waitFor(async () => {
        const all = await prometheus.rules();
        return all.some(({ health }) => health === 'unknown') ? null : all;
      });
      expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
      expect(rules.filter(({ state }) => state === 'firing').map(({ name }) => name)).toEqual([]);
    });
  },
);
